/** Measurements: `npm run bench` lists them, `npm run bench NAME [args…]` runs one. Best on a machine that does nothing else. */
import { menu } from './menu.js'

await menu('bench', new URL('../bench/', import.meta.url))
