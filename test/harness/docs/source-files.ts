// The files of src/ without tests, and what each of them imports: for tests that compare the pages with the code.

import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../../..')

/** The folders of src/, in their order. */
export const SUBJECTS: readonly string[] = [
  'kit',
  'http2',
  'kube',
  'pki',
  'gateway',
  'process',
  'cli',
  'login',
  'apiserver',
  'admin',
  'audit',
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
  'program',
  'demo',
]

export interface SourceFile {
  /** Below src/. */
  readonly path: string
  /** The folder of src/ that it is in; '' for src/main.ts. */
  readonly subject: string
  readonly text: string
  readonly lines: number
  readonly imports: readonly Import[]
}

export interface Import {
  /** Below src/. */
  readonly path: string
  /** Nothing of it is left when the program runs. */
  readonly isTypeOnly: boolean
}

const STATEMENT = /^(import|export)\b([^'";]*?)\bfrom '(\.[^']+)'|^import '(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm

/** By path. */
export function sourceFiles(): ReadonlyMap<string, SourceFile> {
  const names = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).sort()
  return new Map(
    names.filter((name) => /(?<!\.test)\.tsx?$/.test(name)).map((name): [string, SourceFile] => [name, read(name)]),
  )
}

function read(path: string): SourceFile {
  const text = readFileSync(join(ROOT, 'src', path), 'utf8')
  const types = new Map<string, boolean>()
  for (const [, keyword, clause = '', from, bare, dynamic] of text.matchAll(STATEMENT)) {
    const target = posix.join(posix.dirname(path), from ?? bare ?? dynamic ?? '')
    types.set(target, keyword !== undefined && hasOnlyTypes(clause) && types.get(target) !== false)
  }
  return {
    path,
    subject: path.includes('/') ? (path.split('/')[0] ?? '') : '',
    text,
    lines: text.split('\n').length - 1,
    imports: [...types].map(([target, isTypeOnly]) => ({ path: target, isTypeOnly })),
  }
}

/** ` type { A } `, ` { type A, type B } `; not ` { type A, b } `. */
function hasOnlyTypes(clause: string): boolean {
  const text = clause.trim()
  if (/^type\b/.test(text)) return true
  const names =
    /^\{([^}]*)\}$/
      .exec(text)?.[1]
      ?.split(',')
      .filter((name) => name.trim() !== '') ?? []
  return names.length > 0 && names.every((name) => /^\s*type\s/.test(name))
}
