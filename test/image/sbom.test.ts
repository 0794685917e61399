// The bill of materials against what says the same in another way: the source maps of the bundle, and the lock file.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { PATIENT } from '../harness/patience.ts'

interface Component {
  readonly type: string
  readonly 'bom-ref': string
  readonly group?: string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly cpe?: string
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly licenses: readonly { readonly license?: { readonly id: string }; readonly expression?: string }[]
}

interface Sbom {
  readonly bomFormat: string
  readonly specVersion: string
  readonly serialNumber: string
  readonly version: number
  readonly metadata: { readonly timestamp?: string; readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

const ROOT = join(import.meta.dirname, '../..')
const dir = mkdtempSync(join(tmpdir(), 'portcullis-sbom-'))
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const LOCK: Readonly<Record<string, { version: string; integrity: string }>> = JSON.parse(
  readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
).packages
let text: string
let sbom: Sbom

before(() => {
  text = buildInto('first')
  sbom = JSON.parse(text)
}, PATIENT)
after(() => rmSync(dir, { recursive: true, force: true }))

function buildInto(name: string): string {
  const env = { ...process.env, PORTCULLIS_COMMIT: 'c0ffee', PORTCULLIS_COMMIT_DATE: '2026-11-22T22:00:00Z' }
  const { status, stderr } = spawnSync(process.execPath, ['build/build.ts', '--out', join(dir, name)], {
    cwd: ROOT,
    env,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  return readFileSync(join(dir, name, 'sbom.cdx.json'), 'utf8')
}

/** Folders of packages that the source maps name. */
function mappedFolders(): readonly string[] {
  const found = new Set<string>()
  for (const name of readdirSync(join(dir, 'first'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.map'),
  )) {
    const { sources } = JSON.parse(readFileSync(join(dir, 'first', name), 'utf8')) as { sources: readonly string[] }
    for (const source of sources) {
      const folder = /(?:^|\/)(node_modules\/.*)$/.exec(source)?.[1]
      const whole = folder && /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(folder)?.[0]
      if (whole) found.add(whole)
    }
  }
  return [...found].sort()
}

function fullName({ group, name }: Component): string {
  return group === undefined ? name : `${group}/${name}`
}

test('its packages are those that the source maps of the bundle name, with version and hash of the lock file', () => {
  const libraries = sbom.components.filter(({ type }) => type === 'library')
  const folders = mappedFolders()
  assert.ok(folders.length > 20, folders.join())
  const expected = folders.map((folder) => {
    const { version, integrity } = LOCK[folder] ?? { version: '', integrity: '' }
    const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
    return `${name} ${version} ${integrity}`
  })
  const listed = libraries.map((one) => {
    const [{ alg, content } = { alg: '', content: '' }] = one.hashes ?? []
    const integrity = `${alg.replace('SHA-', 'sha')}-${Buffer.from(content, 'hex').toString('base64')}`
    return `${fullName(one)} ${one.version} ${integrity}`
  })
  assert.deepEqual(listed.toSorted(), expected.toSorted())
  for (const one of libraries) {
    assert.equal(one.purl, `pkg:npm/${fullName(one).replace('@', '%40')}@${one.version}`)
    assert.equal(one.licenses.length, 1)
    const [{ license, expression } = {}] = one.licenses
    if (one.name === 'pako') assert.deepEqual([license, expression], [undefined, '(MIT AND Zlib)'])
    else assert.match(license?.id ?? '', /^(?:0BSD|Apache-2\.0|BlueOak-1\.0\.0|BSD-[23]-Clause|ISC|MIT)$/)
  }
})

test('Node is in it, once, by the name under which its advisories are found', () => {
  const others = sbom.components.filter(({ type }) => type !== 'library')
  const { version } = LOCK['node_modules/node'] ?? { version: '' }
  assert.deepEqual(
    others.map(({ type, name, version, cpe }) => ({ type, name, version, cpe })),
    [{ type: 'platform', name: 'node', version, cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*` }],
  )
})

test('what CycloneDX 1.6 requires: head, references that lead somewhere, everything reachable from the program', () => {
  const { bomFormat, specVersion, serialNumber, version, metadata, components, dependencies } = sbom
  assert.deepEqual([bomFormat, specVersion, version], ['CycloneDX', '1.6', 1])
  assert.match(serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  assert.equal(metadata.timestamp, '2026-11-22T22:00:00Z')
  assert.deepEqual([metadata.component.name, metadata.component.version], ['portcullis', PACKAGE.version])
  const refs = [metadata.component, ...components].map((one) => one['bom-ref'])
  assert.equal(new Set(refs).size, refs.length)
  assert.deepEqual(
    dependencies.map(({ ref }) => ref),
    refs,
  )
  const reached = new Set<string>()
  const visit = (ref: string): void => {
    if (reached.has(ref)) return
    reached.add(ref)
    const edges = dependencies.find((one) => one.ref === ref)
    assert.ok(edges, ref)
    for (const next of edges.dependsOn) visit(next)
  }
  visit(metadata.component['bom-ref'])
  assert.deepEqual(reached, new Set(refs))
})

test('the same sources give the same bytes', () => {
  assert.equal(buildInto('second'), text)
})
