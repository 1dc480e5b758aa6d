export {
  type Fenced,
  type GuardedDatabase,
  type SqliteGuard,
  type SqliteGuardOptions,
  type SynchronousWrite,
  sqliteGuard,
} from './sqlite.js'
