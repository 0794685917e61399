// The bill of materials of the bundle, CycloneDX 1.6: the packages that are in it, as the lock file has them, and the Node that runs it.
// `npm sbom` cannot say that: all packages are devDependencies, and most of them are not bundled.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BuildConstants } from '../src/kit/io/program/build.ts'
import type { BundledPackage } from './licences.ts'

/** An entry of `packages` in package-lock.json. */
interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  /** Only the root has them: all that this program loads. */
  readonly devDependencies?: Readonly<Record<string, string>>
}

interface Component {
  readonly type: 'application' | 'library' | 'platform'
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly [field: string]: unknown
}

const NODE_FOLDER = 'node_modules/node'

/** The same packages and constants give the same bytes. */
export function sbomText(packages: readonly BundledPackage[], constants: BuildConstants, root: string): string {
  const lock = readLock(root)
  const locked = (folder: string): LockedPackage => {
    const found = lock.get(folder)
    if (found === undefined) throw new Error(`${folder} is bundled and not in package-lock.json: run npm ci`)
    return found
  }
  const refs = new Map(packages.map((one) => [one.folder, npmRef(one.name, one.version)]))
  const node = nodeComponent(locked(NODE_FOLDER).version ?? '')
  const program: Component = {
    type: 'application',
    'bom-ref': npmRef('portcullis', constants.version),
    name: 'portcullis',
    version: constants.version,
    purl: npmRef('portcullis', constants.version),
    licenses: [{ license: { id: 'Apache-2.0' } }],
  }
  const components = [node, ...packages.map((one) => packageComponent(one, locked(one.folder)))]
  const dependsOn = (folder: string): readonly string[] => {
    const names = Object.keys(dependenciesOf(locked(folder)))
    return names.flatMap((name) => refs.get(resolveFolder(lock, folder, name)) ?? []).sort()
  }
  const dependencies = [
    { ref: program['bom-ref'], dependsOn: [node['bom-ref'], ...dependsOn('')] },
    { ref: node['bom-ref'], dependsOn: [] },
    ...packages.map(({ folder, name, version }) => ({ ref: npmRef(name, version), dependsOn: dependsOn(folder) })),
  ]
  const content = {
    metadata: {
      ...(constants.date !== '' && { timestamp: constants.date }),
      lifecycles: [{ phase: 'build' }],
      component: program,
      ...(constants.commit !== '' && { properties: [{ name: 'portcullis:commit', value: constants.commit }] }),
    },
    components,
    dependencies,
  }
  const head = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
  }
  return `${JSON.stringify({ ...head, serialNumber: serialOf(content), version: 1, ...content }, undefined, 2)}\n`
}

function packageComponent({ name, version, licence }: BundledPackage, locked: LockedPackage): Component {
  if (locked.version !== version) {
    throw new Error(`${name} ${version} is installed, package-lock.json has ${locked.version}: run npm ci`)
  }
  const scope = /^(@[^/]+)\/(.+)$/.exec(name)
  return {
    type: 'library',
    'bom-ref': npmRef(name, version),
    ...(scope !== null && { group: scope[1] }),
    name: scope?.[2] ?? name,
    version,
    scope: 'required',
    ...(locked.integrity !== undefined && { hashes: [hashOf(locked.integrity)] }),
    // Several that apply together are an expression of SPDX.
    licenses: [licence.startsWith('(') ? { expression: licence } : { license: { id: licence } }],
    purl: npmRef(name, version),
  }
}

/** The component for Node.js, as the image has it; scanners find its advisories by the CPE. */
function nodeComponent(version: string): Component {
  return {
    type: 'platform',
    'bom-ref': `pkg:generic/node@${version}`,
    name: 'node',
    version,
    scope: 'required',
    licenses: [{ license: { id: 'MIT' } }],
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/node@${version}`,
  }
}

/** purl-spec: the @ of a scope is escaped. */
function npmRef(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

/** Subresource Integrity (base64) -> a hash of CycloneDX (hexadecimal). */
function hashOf(integrity: string): { readonly alg: string; readonly content: string } {
  const [, bits = '', base64 = ''] = /^sha(256|384|512)-(\S+)$/.exec(integrity) ?? []
  if (bits === '') throw new Error(`package-lock.json has an integrity that is not understood: ${integrity}`)
  return { alg: `SHA-${bits}`, content: Buffer.from(base64, 'base64').toString('hex') }
}

/** As Node looks for a package: in the folder's own node_modules, then in those above. */
function resolveFolder(lock: ReadonlyMap<string, LockedPackage>, from: string, name: string): string {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const candidate = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (lock.has(candidate) || folder === '') return candidate
  }
}

function dependenciesOf(locked: LockedPackage): Readonly<Record<string, string>> {
  const { devDependencies, dependencies, optionalDependencies, peerDependencies } = locked
  return { ...devDependencies, ...peerDependencies, ...optionalDependencies, ...dependencies }
}

function readLock(root: string): ReadonlyMap<string, LockedPackage> {
  // npm has written it.
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  return new Map(Object.entries(lock.packages))
}

/** A UUID (version 8: of one's own making) of what it says, so that the same build has the same. */
function serialOf(content: object): string {
  const hex = createHash('sha256').update(JSON.stringify(content)).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)]
  return `urn:uuid:${parts.join('-')}`
}
