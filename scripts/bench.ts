/**
 * Measurements: `npm run bench` compares leases on Redis with raw ioredis and with other libraries, `npm run bench NAME [args…]` runs
 * one measurement, `npm run bench -- --help` lists them. Best on a machine that does nothing else.
 */
import { menu } from './menu.js'

await menu('bench', new URL('../bench/', import.meta.url), 'redis')
