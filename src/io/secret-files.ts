// Secret bytes kept outside of an UpstreamCluster: `{file}` and `{name, namespace, key}` become the inline fields.

import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CLIENT_SECRETS, SERVING_SECRETS } from '../api/credential-checks.ts'
import type { FieldProblem } from '../api/field-errors.ts'
import { childPath, ProblemList, shown } from '../api/field-errors.ts'
import { isRecord } from '../api/object-shape.ts'

const DEFAULT_NAMESPACE = 'default'
const MAX_SECRET_BYTES = 1024 * 1024

/** Secrets by `namespace/name`, each with its keys. */
export type Secrets = ReadonlyMap<string, ReadonlyMap<string, Buffer>>

export interface Resolved {
  /** The object with every reference that could be followed replaced by inline bytes. */
  readonly object: unknown
  readonly problems: readonly FieldProblem[]
  /** Paths of inline fields that came from references, and the paths of those. */
  readonly origins: ReadonlyMap<string, string>
  /** The bytes that they led to, base64, in the same order. */
  readonly bytes: readonly string[]
}

/** Reads files that references name, each once; remembers which they were, found or not. */
export class SecretFiles {
  readonly #dir: string
  readonly #read = new Map<string, Promise<Buffer | string>>()

  constructor(dir: string) {
    this.#dir = dir
  }

  /** Absolute paths of all files asked for. */
  get paths(): Iterable<string> {
    return this.#read.keys()
  }

  /** The bytes, or why there are none. */
  read(file: string): Promise<Buffer | string> {
    const path = resolve(this.#dir, file)
    const known = this.#read.get(path)
    if (known !== undefined) return known
    const reading = readSecretFile(path)
    this.#read.set(path, reading)
    return reading
  }
}

async function readSecretFile(path: string): Promise<Buffer | string> {
  try {
    if (!(await stat(path)).isFile()) return 'is no regular file'
    const bytes = await readFile(path)
    if (bytes.length === 0) return 'is empty'
    return bytes.length > MAX_SECRET_BYTES ? 'is larger than 1 MiB' : bytes
  } catch (error) {
    return `cannot be read: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** The key of a Secret in `Secrets`. */
export function secretName(namespace: unknown, name: unknown): string {
  const given = typeof namespace === 'string' && namespace !== '' ? namespace : DEFAULT_NAMESPACE
  return `${given}/${String(name)}`
}

/** The data of a v1 Secret; `stringData` outranks `data`, as in an API server. */
export function readSecret(object: Readonly<Record<string, unknown>>, out: ProblemList): ReadonlyMap<string, Buffer> {
  const keys = new Map<string, Buffer>()
  for (const [field, encoding] of [
    ['data', 'base64'],
    ['stringData', 'utf8'],
  ] as const) {
    const data = object[field] ?? {}
    if (!isRecord(data)) {
      out.error(field, 'is not a map', 'write a map of texts')
      continue
    }
    for (const [key, text] of Object.entries(data)) {
      const path = `${field}[${key}]`
      if (typeof text !== 'string') out.error(path, 'is not a text', 'put the value in quotes')
      else if (encoding === 'base64' && !/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(text)) {
        out.error(path, 'is not base64', 'encode with base64, or use stringData')
      } else keys.set(key, Buffer.from(text, encoding))
    }
  }
  return keys
}

/** Leaves alone what is malformed or stands beside inline bytes: that is for `checkUpstreamCluster` to report. */
export async function resolveReferences(object: unknown, secrets: Secrets, files: SecretFiles): Promise<Resolved> {
  const out = new ProblemList()
  const origins = new Map<string, string>()
  const found: string[] = []
  const spec = isRecord(object) ? object['spec'] : undefined
  if (!isRecord(object) || !isRecord(spec)) return { object, problems: [], origins, bytes: found }
  const sections: [string, Readonly<Record<string, string>>][] = [
    ['clientConfig', CLIENT_SECRETS],
    ['secureServing', SERVING_SECRETS],
  ]
  const replaced: Record<string, unknown> = {}
  for (const [name, fields] of sections) {
    const section = spec[name]
    if (!isRecord(section)) continue
    const next: Record<string, unknown> = { ...section }
    for (const [field, referenceField] of Object.entries(fields)) {
      const reference = section[referenceField]
      if (!isRecord(reference) || (section[field] ?? '') !== '') continue
      const path = `spec.${name}.${referenceField}`
      const bytes = await follow(reference, path, secrets, files, out)
      if (bytes === undefined) continue
      const inline = bytes.toString('base64')
      found.push(inline)
      next[field] = inline
      delete next[referenceField]
      origins.set(`spec.${name}.${field}`, path)
    }
    replaced[name] = next
  }
  return { object: { ...object, spec: { ...spec, ...replaced } }, problems: out.problems, origins, bytes: found }
}

async function follow(
  reference: Readonly<Record<string, unknown>>,
  path: string,
  secrets: Secrets,
  files: SecretFiles,
  out: ProblemList,
): Promise<Buffer | undefined> {
  const { file, name, namespace, key } = reference
  const isFile = typeof file === 'string' && file !== ''
  const isSecret = typeof name === 'string' && name !== ''
  if (isFile && !isSecret && (key ?? '') === '' && (namespace ?? '') === '') {
    const bytes = await files.read(file)
    if (typeof bytes !== 'string') return bytes
    out.error(childPath(path, 'file'), `${shown(file)} ${bytes}`, 'name a readable file, relative to the directory')
  }
  if (!isFile && isSecret && typeof key === 'string' && key !== '') {
    const full = secretName(namespace, name)
    const secret = secrets.get(full)
    const bytes = secret?.get(key)
    if (bytes !== undefined && bytes.length > 0) return bytes
    if (secret === undefined) out.error(path, `Secret ${full} is not in the directory`, 'add a file with the Secret')
    else if (bytes === undefined) {
      const known = [...secret.keys()].join(', ')
      out.error(childPath(path, 'key'), `Secret ${full} has no key ${shown(key)}`, `its keys are: ${known || 'none'}`)
    } else out.error(childPath(path, 'key'), `key ${shown(key)} of Secret ${full} is empty`, 'fill it')
  }
  return undefined
}
