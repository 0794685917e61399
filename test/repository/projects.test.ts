// Each subject is a project of the type checker, with references to the subjects that it imports: tsc refuses an import of any other (decision 74).
// It follows references of references, so what is only there is for the test of the references to refuse.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT, SUBJECTS, sourceFiles } from '../harness/docs/source-files.ts'
import { PATIENT } from '../harness/patience.ts'

interface Project {
  readonly extends: string
  readonly references: readonly { readonly path: string }[]
}

const projects = new Map(SUBJECTS.map((subject) => [subject, projectOf(subject)]))

function projectOf(subject: string): Project {
  return JSON.parse(readFileSync(join(ROOT, 'src', subject, 'tsconfig.json'), 'utf8'))
}

test('the project of a subject references the subjects that its files import, in their order, and is otherwise as all others', () => {
  const files = [...sourceFiles().values()]
  for (const subject of SUBJECTS) {
    const own = files.filter((file) => file.subject === subject)
    const imported = new Set(own.flatMap(({ imports }) => imports.map(({ path }) => path.split('/')[0])))
    const references = SUBJECTS.filter((name) => name !== subject && imported.has(name))
    assert.deepEqual(
      projects.get(subject),
      { extends: '../tsconfig.subject.json', references: references.map((name) => ({ path: `../${name}` })) },
      `src/${subject}/tsconfig.json`,
    )
  }
})

test('tsc -b checks all subjects, the dashboard and what stands in no subject', () => {
  const text = readFileSync(join(ROOT, 'tsconfig.json'), 'utf8')
  const referenced = [...text.matchAll(/\{ "path": "([^"]+)" \}/g)].map(([, path]) => path)
  assert.deepEqual(
    referenced.filter((path) => path !== 'src/insight/dashboard'),
    SUBJECTS.map((subject) => `src/${subject}`),
  )
  assert.ok(referenced.includes('src/insight/dashboard'))
  assert.match(readFileSync(join(ROOT, 'package.json'), 'utf8'), /"check": ".* && tsc -b"/)
})

test('the compiler refuses an import of a subject to which no reference leads, whichever two they are', PATIENT, () => {
  const dir = copyOfProjects()
  try {
    for (const subject of SUBJECTS) {
      writeFileSync(join(dir, 'src', subject, 'noun.ts'), 'export interface Noun {\n  readonly name: string\n}\n')
      for (const other of SUBJECTS.filter((name) => name !== subject)) {
        const text = `import type { Noun } from '../${other}/noun.ts'\n\nexport const nameOf = ({ name }: Noun): string => name\n`
        writeFileSync(join(dir, 'src', subject, `imports-${other}.ts`), text)
      }
    }
    const refused = refusedImports(dir, ...SUBJECTS)
    const expected = SUBJECTS.flatMap((subject) =>
      SUBJECTS.filter((other) => other !== subject && !reachable(subject).has(other)).map(
        (other) => `src/${subject}/imports-${other}.ts -> src/${other}/noun.ts`,
      ),
    )
    assert.deepEqual(refused, expected.sort())
    for (const [subject, other] of [
      ['kit', 'kube'],
      ['gateway', 'protection'],
      ['scale-up-guard', 'scaling'],
      ['incidents', 'protection'],
      ['insight', 'program'],
    ] as const) {
      assert.ok(
        refused.includes(`src/${subject}/imports-${other}.ts -> src/${other}/noun.ts`),
        `${subject} -> ${other}`,
      )
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})

test('it refuses an import of Kubernetes in a file of kit', PATIENT, () => {
  const dir = copyOfProjects()
  try {
    for (const subject of ['kit', 'kube']) {
      const filter = (path: string): boolean => !path.endsWith('.test.ts')
      cpSync(join(ROOT, 'src', subject), join(dir, 'src', subject), { recursive: true, filter })
    }
    assert.deepEqual(refusedImports(dir, 'kit'), [])
    const file = join(dir, 'src/kit/api/ports.ts')
    const forbidden = "import type { UserInfo } from '../../kube/api/user.ts'\n"
    writeFileSync(file, `${forbidden}${readFileSync(file, 'utf8')}export type Forbidden = UserInfo\n`)
    assert.ok(refusedImports(dir, 'kit').includes('src/kit/api/ports.ts -> src/kube/api/user.ts'))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})

/** The projects without their files. */
function copyOfProjects(): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-projects-'))
  mkdirSync(join(dir, 'src'))
  for (const file of ['package.json', 'tsconfig.json', 'src/tsconfig.subject.json'])
    cpSync(join(ROOT, file), join(dir, file))
  for (const subject of SUBJECTS) {
    mkdirSync(join(dir, 'src', subject))
    cpSync(join(ROOT, 'src', subject, 'tsconfig.json'), join(dir, 'src', subject, 'tsconfig.json'))
  }
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  return dir
}

/** What tsc says of the projects of these subjects; it must have nothing else to say. */
function refusedImports(dir: string, ...subjects: readonly string[]): readonly string[] {
  const { stdout, stderr } = spawnSync(
    join(ROOT, 'node_modules/.bin/tsc'),
    ['-b', '--pretty', 'false', ...subjects.map((subject) => `src/${subject}`)],
    { cwd: dir, encoding: 'utf8' },
  )
  assert.equal(stderr, '')
  const errors = stdout.split('\n').filter((line) => / error TS\d+: /.test(line))
  return errors
    .map((line) => {
      const [, from, to] =
        /^(src\/[^(]+)\(\d+,\d+\): error TS6307: File '.*\/(src\/[^']+)' is not listed /.exec(line) ?? []
      return from !== undefined && to !== undefined ? `${from} -> ${to}` : assert.fail(line)
    })
    .sort()
}

/** The subjects to which its references lead, directly or through others. */
function reachable(subject: string): ReadonlySet<string> {
  const direct = projects.get(subject)?.references.map(({ path }) => path.slice('../'.length)) ?? []
  return new Set(direct.flatMap((name) => [name, ...reachable(name)]))
}
