/** Runs that are too slow for every test run: `npm run soak` lists them, `npm run soak NAME [args…]` runs one. */
import { menu } from './menu.js'

await menu('soak', new URL('./soak/', import.meta.url))
