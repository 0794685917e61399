// The house plan as a test: which subject and which layer may import which, that rooms do not import each other in a circle, which files may touch
// the world, that files do not import each other in a circle either, and that each is part of the program.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { SUBJECTS } from '../harness/docs/source-files.ts'

const ROOT = resolve(import.meta.dirname, '../../src')
/**
 * A layer is a folder of a subject (`src/protection/core/`). It imports from itself and from those of a smaller rank, of its subject and of others; layers of one
 * rank are siblings.
 */
const RANK: Readonly<Record<string, number>> = {
  api: 0,
  // Runs in browsers.
  dashboard: 1,
  core: 1,
  http2: 1,
  state: 2,
  io: 2,
  request: 3,
  controllers: 3,
  admin: 3,
  server: 3,
  cli: 3,
  webhooks: 4,
  app: 5,
  demo: 6,
}
/**
 * What a subject that can be left out adds to the program, and the list of these subjects. A registration may name any layer of its subject: it loads
 * all but nouns and flags when they are needed. Files of any layer may read the list.
 */
const REGISTRATION = /^[\w-]+\/subject\.ts$/
const LIST = 'program/subjects/subjects.ts'
/** What counts has the rank of what it counts. */
const ALIASES: Readonly<Record<string, string>> = { metrics: 'io' }
/** The layer of what stands in a subject without one. */
const LAYER_OF_SUBJECT: Readonly<Record<string, string>> = {
  apiserver: 'server',
  cli: 'cli',
  demo: 'demo',
  http2: 'http2',
  process: 'app',
  program: 'app',
}
const PURE = new Set(['api', 'core', 'http2'])
/** Folders that may use Node's modules; Buffer is a global everywhere. */
const WORLDLY = new Set(['io', 'app', 'demo'])
/** Where the program begins: the process, a gateway thread, the dashboard in a browser; and the program for laptops. */
const ENTRY_POINTS = ['main.ts', 'program/threads/thread/entry.ts', 'insight/dashboard/main.tsx', 'login/app/main.ts']
const FORBIDDEN_NAMES = /^(util|utils|common|helper|helpers|manager|misc)\.ts$/

interface SourceFile {
  readonly path: string
  /** The layer. */
  readonly folder: string
  readonly subject: string
  /** The folder that the file stands in, below src/. */
  readonly room: string
  readonly imports: readonly string[]
  readonly text: string
}

function sources(): SourceFile[] {
  return readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.test.ts') && name !== 'main.ts')
    .map(source)
}

function source(path: string): SourceFile {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const imports = [
    ...text.matchAll(/^(?:import|export)[^'"]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm),
  ]
  return {
    path,
    folder: layerOf(path),
    subject: subjectOf(path),
    room: dirname(path),
    text,
    imports: imports.map((m) => m[1] ?? m[2] ?? m[3] ?? ''),
  }
}

function subjectOf(path: string): string {
  return path.split('/')[0] ?? ''
}

function layerOf(path: string): string {
  if (REGISTRATION.test(path) || path === LIST) return 'api'
  const [subject = '', folder = ''] = path.split('/')
  const layer = ALIASES[folder] ?? folder
  return RANK[layer] === undefined ? (LAYER_OF_SUBJECT[subject] ?? '') : layer
}

function targetOf(file: SourceFile, specifier: string): string {
  return relative(ROOT, resolve(dirname(join(ROOT, file.path)), specifier))
}

function folderOf(file: SourceFile, specifier: string): string {
  return layerOf(targetOf(file, specifier))
}

const files = sources()

test('a file imports only from its own folder or from folders to the left', () => {
  const wrong: string[] = []
  for (const file of files) {
    if (REGISTRATION.test(file.path) || file.path === LIST) continue
    const from = RANK[file.folder]
    assert.ok(from !== undefined, `src/${file.path}: it stands in no layer`)
    for (const specifier of file.imports.filter((name) => name.startsWith('.'))) {
      const target = folderOf(file, specifier)
      const to = RANK[target]
      if (to === undefined || (target !== file.folder && to >= from)) wrong.push(`${file.path} -> ${specifier}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('a subject imports those in front of it, and no others', () => {
  const back: string[] = []
  for (const file of files) {
    const rank = SUBJECTS.indexOf(file.subject)
    assert.ok(rank >= 0, `src/${file.subject} is not in the house plan`)
    for (const specifier of file.imports.filter((name) => name.startsWith('.'))) {
      const target = subjectOf(targetOf(file, specifier))
      if (SUBJECTS.indexOf(target) > rank) back.push(`${file.path} -> ${specifier}`)
    }
  }
  assert.deepEqual(back, [])
})

/** Those of a subject are in a program only together with it. */
const STANDS_ON: Readonly<Record<string, string>> = { scaling: 'protection', federation: 'cache' }

test('a subject that can be left out is imported by the list alone, by one that stands on it, and by the demo, which shows all of them', () => {
  const optional = SUBJECTS.filter((subject) => files.some(({ path }) => path === `${subject}/subject.ts`))
  assert.deepEqual(optional, [
    'protection',
    'scaling',
    'scale-up-guard',
    'cache',
    'federation',
    'incidents',
    'grants',
    'sessions',
    'insight',
    'traces',
  ])
  const wrong = files.flatMap((file) =>
    file.imports
      .filter((name) => name.startsWith('.'))
      .map((name) => targetOf(file, name))
      .filter((target) => optional.includes(subjectOf(target)) && subjectOf(target) !== file.subject)
      .filter((target) => STANDS_ON[file.subject] !== subjectOf(target))
      .filter((target) => file.subject !== 'demo' && (file.path !== LIST || !REGISTRATION.test(target)))
      .map((target) => `${file.path} -> ${target}`),
  )
  assert.deepEqual(wrong, [])
})

test('the dashboard, which runs in browsers, shares types and constants of api only, and no other file imports it', () => {
  const wrong = files.flatMap((file) =>
    file.imports
      .filter((name) => name.startsWith('.'))
      .map((name) => ({ name, from: file.folder, to: folderOf(file, name) }))
      .filter(({ from, to }) => (from === 'dashboard' ? to !== 'dashboard' && to !== 'api' : to === 'dashboard'))
      .map(({ name }) => `${file.path} -> ${name}`),
  )
  assert.deepEqual(wrong, [])
})

test('rooms do not import each other in a circle', () => {
  const rooms = new Map<string, Map<string, string>>()
  for (const file of files) {
    const imported = rooms.get(file.room) ?? new Map<string, string>()
    rooms.set(file.room, imported)
    for (const specifier of file.imports.filter((name) => name.startsWith('.'))) {
      const target = join(dirname(file.path), specifier)
      if (dirname(target) !== file.room) imported.set(dirname(target), `${file.path} -> ${target}`)
    }
  }
  const done = new Set<string>()
  const visit = (room: string, trail: readonly string[]): void => {
    const start = trail.indexOf(room)
    if (start >= 0) {
      const circle = [...trail.slice(start), room]
      const ties = circle.slice(1).map((next, i) => rooms.get(circle[i] ?? '')?.get(next))
      assert.fail(`a circle of rooms: ${ties.join(', ')}`)
    }
    if (done.has(room)) return
    for (const next of rooms.get(room)?.keys() ?? []) visit(next, [...trail, room])
    done.add(room)
  }
  for (const room of rooms.keys()) visit(room, [])
})

test('api, core and http2 are pure: no node: modules, no clock, no randomness', () => {
  const wrong: string[] = []
  for (const file of files) {
    if (
      PURE.has(file.folder) &&
      /\bDate\.now\(|new Date\(\)|Math\.random\(|performance\.now\(|process\./.test(file.text)
    ) {
      wrong.push(`${file.path} reads the clock, chance or the process`)
    }
    if (WORLDLY.has(file.folder)) continue
    for (const specifier of file.imports) {
      if (specifier.startsWith('node:') && specifier !== 'node:buffer') wrong.push(`${file.path} -> ${specifier}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('the HTTP/2 engine is used by io, and its queue of chunks by the request path', () => {
  const users = files
    .filter(({ folder }) => folder !== 'http2' && folder !== 'io')
    .flatMap((file) => file.imports.filter((name) => /\/http2\//.test(name)).map((name) => `${file.folder} ${name}`))
    .filter((use) => !/^request .*\/http2\/chunk-queue\.ts$/.test(use))
  assert.deepEqual(users, [])
})

test('node:http2 stays below the seam', () => {
  const users = files.filter((file) => file.imports.includes('node:http2'))
  assert.deepEqual(
    users.filter(({ folder }) => folder !== 'io' && folder !== 'demo').map(({ path }) => path),
    [],
  )
})

test('what only tests or benches use does not stand in src', () => {
  const byPath = new Map([...files, source('main.ts')].map((file) => [file.path, file]))
  const reached = new Set<string>()
  const visit = (path: string): void => {
    if (reached.has(path)) return
    reached.add(path)
    for (const specifier of byPath.get(path)?.imports ?? []) {
      if (specifier.startsWith('.')) visit(join(dirname(path), specifier))
    }
  }
  ENTRY_POINTS.forEach(visit)
  const unused = files.map(({ path }) => path).filter((path) => !reached.has(path))
  assert.deepEqual(unused, [], 'no entry point of the program imports these')
})

test('no cycles, no dynamic imports but those of commands, no catch-all names', () => {
  const graph = new Map(
    files.map((file) => [
      file.path,
      file.imports
        .filter((name) => name.startsWith('.'))
        .map((name) => relative(ROOT, resolve(dirname(join(ROOT, file.path)), name))),
    ]),
  )
  const state = new Map<string, 'open' | 'done'>()
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'done') return
    assert.notEqual(state.get(path), 'open', `import cycle: ${[...trail, path].join(' -> ')}`)
    state.set(path, 'open')
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
    state.set(path, 'done')
  }
  for (const path of graph.keys()) visit(path, [])
  for (const file of files) {
    // The modules of a command are loaded when it runs, those of a subject that can be left out by the threads that need them.
    if (!REGISTRATION.test(file.path) && (file.folder !== 'cli' || !/\/(install-)?program\.ts$/.test(file.path)))
      assert.doesNotMatch(file.text, /\bimport\(/, `src/${file.path} hides an import`)
    assert.doesNotMatch(file.path.split('/').at(-1) ?? '', FORBIDDEN_NAMES, `src/${file.path} is a catch-all`)
  }
})
