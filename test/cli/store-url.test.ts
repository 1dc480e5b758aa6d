import assert from 'node:assert/strict'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { describe, test } from 'node:test'
import { CliError } from '../../src/cli/exit.js'
import { redisUrl } from '../../src/cli/target/redis-url.js'
import {
  KNOWN_SCHEMES,
  parseStoreUrl,
  redactUrl,
  type StoreDescription,
  sqliteUrl,
} from '../../src/cli/target/store-url.js'

const host = (name: string, port: number) => ({ host: name, port })

describe('what a store URL says', () => {
  const cases: [string, StoreDescription][] = [
    ['sqlite:/a/b.db', { kind: 'sqlite', path: '/a/b.db' }],
    ['sqlite:///a/b.db', { kind: 'sqlite', path: '/a/b.db' }],
    ['sqlite:b.db', { kind: 'sqlite', path: resolve('b.db') }],
    ['sqlite:~/b.db', { kind: 'sqlite', path: resolve(homedir(), 'b.db') }],
    ['sqlite:/a%20b%3F.db', { kind: 'sqlite', path: '/a b?.db' }],
    [
      'redis://h',
      { kind: 'redis', tls: false, endpoints: [host('h', 6379)], credentials: null, database: 0, parameters: {} },
    ],
    [
      'redis://h?max-ttl=1m30s&prefix=my%20app&allow-eviction=yes',
      {
        kind: 'redis',
        tls: false,
        endpoints: [host('h', 6379)],
        credentials: null,
        database: 0,
        parameters: { maxTtlMs: 90_000, prefix: 'my app', allowEviction: true },
      },
    ],
    [
      'rediss://name@[::1]?ca=/a%20b/ca.pem&cert=c.pem&key=~/k.pem',
      {
        kind: 'redis',
        tls: true,
        endpoints: [host('::1', 6379)],
        credentials: { username: 'name', password: '' },
        database: 0,
        parameters: { ca: '/a b/ca.pem', cert: resolve('c.pem'), key: resolve(homedir(), 'k.pem') },
      },
    ],
    [
      'rediss://u:p%40w@h:7000/3',
      {
        kind: 'redis',
        tls: true,
        endpoints: [host('h', 7000)],
        credentials: { username: 'u', password: 'p@w' },
        database: 3,
        parameters: {},
      },
    ],
    [
      'redis+sentinel://:pw@h1,h2:5/main',
      {
        kind: 'redis-sentinel',
        endpoints: [host('h1', 26379), host('h2', 5)],
        credentials: { username: '', password: 'pw' },
        master: 'main',
      },
    ],
    [
      'redis+cluster://h1,[::1]:7',
      { kind: 'redis-cluster', endpoints: [host('h1', 6379), host('::1', 7)], credentials: null },
    ],
    [
      'postgres://u:p@h/db?sslmode=require',
      {
        kind: 'postgres',
        url: 'postgres://u:p@h/db?sslmode=require',
        database: 'db',
        endpoints: [host('h', 5432)],
        credentials: { username: 'u', password: 'p' },
      },
    ],
    [
      'postgresql:///db?host=/run/postgresql',
      {
        kind: 'postgres',
        url: 'postgresql:///db?host=/run/postgresql',
        database: 'db',
        endpoints: [],
        credentials: null,
      },
    ],
    [
      'mysql://h/db',
      { kind: 'mysql', url: 'mysql://h/db', database: 'db', endpoints: [host('h', 3306)], credentials: null },
    ],
    [
      'etcd://h1,h2,h3',
      { kind: 'etcd', tls: false, endpoints: ['h1', 'h2', 'h3'].map((h) => host(h, 2379)), credentials: null },
    ],
    ['etcds://h1:1', { kind: 'etcd', tls: true, endpoints: [host('h1', 1)], credentials: null }],
    [
      'zookeeper://h1,h2/a/b',
      { kind: 'zookeeper', endpoints: [host('h1', 2181), host('h2', 2181)], credentials: null, chroot: '/a/b' },
    ],
    ['refuse:', { kind: 'refuse' }],
  ]
  for (const [url, description] of cases) test(url, () => assert.deepEqual(parseStoreUrl(url), description))

  test('every scheme is covered above', () => {
    const covered = new Set(cases.map(([url]) => url.slice(0, url.indexOf(':'))))
    assert.deepEqual(
      KNOWN_SCHEMES.filter((scheme) => !covered.has(scheme)),
      [],
    )
  })
})

describe('refused with exit code 64, without the password', () => {
  const cases: [string, RegExp][] = [
    ['', /is no URL/],
    ['leases.db', /is no URL.*sqlite:path/],
    ['secret@h:6379', /is no URL/],
    ['redsi://secret@h', /no store has the scheme redsi:; did you mean redis:\?/],
    ['constructor://h', /no store has the scheme constructor:/],
    ['http://secret@h', /known: sqlite: redis:/],
    ['sqlite:', /name the file/],
    ['sqlite://host/x', /a file has no host/],
    ['sqlite::memory:', /cannot see a database in memory/],
    ['sqlite:/a?mode=ro', /takes no parameters/],
    ['sqlite:/a%zz', /two hex digits/],
    ['sqlite:/a%00b', /NUL/],
    ['redis://', /names no host/],
    ['redis://h1,h2', /one server has one host/],
    ['redis://:secret@h/x', /number of a database/],
    ['redis://:secret@h:0', /port lies between/],
    ['redis://:secret@h:99999', /port lies between/],
    ['redis://:sec/ret@h', /write @ as %40/],
    ['redis://:sec@secret@h', /write @ as %40/],
    ['redis://:sec#secret@h', /write @ as %40/],
    ['redis://:secret%zz@h', /two hex digits/],
    ['redis://:secret@-h-', /must be host or host:port/],
    ['redis://secret:secret', /must be host or host:port/],
    ['postgres://u:sec/ret@h/db', /write @ as %40/],
    ['postgres://h/db?password=sec@ret', /write @ as %40/],
    ['redis://h?password=secret', /user and password stand before the host/],
    ['redis://:secret@h?ttl=5m', /no parameter "ttl" \(known: max-ttl, prefix, allow-eviction, ca, cert, key\)/],
    ['redis://:secret@h?maxttl=5m', /no parameter "maxttl"; did you mean max-ttl\?/],
    ['redis://:secret@h?constructor=5m', /no parameter "constructor"/],
    ['redis://:secret@h?max-ttl=5', /max-ttl in the URL of the store must be a duration .*\(for seconds write 5s\)/],
    ['redis://:secret@h?max-ttl=', /max-ttl in the URL of the store must be a duration/],
    ['redis://:secret@h?max-ttl=5s&max-ttl=6s', /"max-ttl" is given twice/],
    ['redis://:secret@h?prefix=', /prefix must not be empty/],
    ['redis://:secret@h?allow-eviction=1', /allow-eviction must be yes or no, but got "1"/],
    ['redis://:secret@h?ca=/x', /ca is for rediss:/],
    ['rediss://:secret@h?ca=', /ca must be the path of a PEM file/],
    ['rediss://:secret@h?cert=/x', /takes both, cert=/],
    ['rediss://:secret@h?key=/x', /takes both, cert=/],
    ['etcd://:secret@h?x=1', /no parameters/],
    ['redis+sentinel://:secret@h', /name the master/],
    ['redis+cluster://:secret@h/1', /nothing may follow/],
    ['etcd://secret:secret@h/x', /nothing may follow/],
    ['zookeeper://', /names no host/],
  ]
  for (const [url, message] of cases) {
    test(url || 'nothing', () => {
      assert.throws(
        () => parseStoreUrl(url),
        (error) => {
          assert.ok(error instanceof CliError)
          assert.equal(error.exitCode, 64)
          assert.match(error.message, message)
          assert.doesNotMatch(error.message, /secret|sec[@/#]/)
          return true
        },
      )
    })
  }
})

test('redactUrl leaves nothing of user, password and parameters', () => {
  const shown = [
    'redis://u:p@h/1',
    'redis://:p@h1,u:p@h2/m',
    'postgres://h/db?password=p',
    'redis://u:p/p@p:p@h',
    'u:p@h',
    'sqlite:/p@q',
  ].map(redactUrl)
  assert.deepEqual(shown, [
    'redis://***@h/1',
    'redis://***@h2/m',
    'postgres://h/db?***',
    'redis://***@h',
    'u:***@h',
    'sqlite:/p@q',
  ])
})

test('a URL of Redis says the same when it comes out of HOLDFAST_STORE, in whatever folder', () => {
  const urls = [
    ['redis://h', 'redis://h:6379'],
    ['redis://[::1]:7/2', 'redis://[::1]:7/2'],
    ['redis://:p%20%40%2F@h', 'redis://:p%20%40%2F@h:6379'],
    ['redis://u@h?max-ttl=300s', 'redis://u@h:6379?max-ttl=5m'],
    ['redis://u:p%3A@h?allow-eviction=no&prefix=a+b%26c', 'redis://u:p%3A@h:6379?prefix=a%20b%26c&allow-eviction=no'],
    ['rediss://h/0?ca=ca%20%40.pem', `rediss://h:6379?ca=${resolve('ca')}%20%40.pem`],
    ['rediss://h?key=/k&cert=/c', 'rediss://h:6379?cert=/c&key=/k'],
  ] as const
  for (const [given, expected] of urls) {
    const description = parseStoreUrl(given)
    assert.ok(description.kind === 'redis')
    const url = redisUrl(description)
    assert.equal(url, expected)
    assert.deepEqual(parseStoreUrl(url), description)
    assert.equal(redisUrl(description, '***'), expected.replace(/\/\/.*@/, '//***@'))
  }
})

test('a path survives the way through HOLDFAST_STORE', () => {
  for (const path of ['/a b/c', '/100%/x', '/what?/#x', '/tab\there', '/ünï/😀']) {
    const url = sqliteUrl(path)
    assert.doesNotMatch(url, /\s/)
    assert.deepEqual(parseStoreUrl(url), { kind: 'sqlite', path })
  }
})
