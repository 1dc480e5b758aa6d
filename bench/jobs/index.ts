/** What a process of the bench can be asked to do with its contestant. */
import { contend } from './contend.js'
import { cycles } from './cycles.js'
import { inherit } from './inherit.js'
import { keep, rest } from './keep.js'

export const JOBS = { contend, cycles, inherit, keep, rest }
export type Jobs = typeof JOBS
