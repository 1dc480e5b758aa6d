export { type Fenced, type GuardedDatabase, type SqliteGuard, sqliteGuard } from './sqlite.js'
