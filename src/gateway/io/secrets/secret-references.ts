// `{file}` and `{name, namespace, key}` in place of an UpstreamCluster's inline secret fields: where they are, and the object with the bytes filled
// in. secret-files.ts and sources/objects/references.ts resolve them.

import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { fieldOf, impliedDefault } from '../../../kit/api/json/json-schema.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { childPath, type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import { CLIENT_SECRETS, SERVING_SECRETS } from '../../api/upstream-cluster/credential-checks.ts'
import { CLIENT_CONFIG_SCHEMA } from '../../api/upstream-cluster/credentials-schema.ts'

const DEFAULT_NAMESPACE = impliedDefault(fieldOf(fieldOf(CLIENT_CONFIG_SCHEMA, 'caRef'), 'namespace'))
const SECTIONS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['clientConfig', CLIENT_SECRETS],
  ['secureServing', SERVING_SECRETS],
]

/** One reference, even if malformed, which `checkUpstreamCluster` reports. */
export interface SecretReferenceAt {
  /** `clientConfig` or `secureServing`. */
  readonly section: string
  /** The inline field that it replaces. */
  readonly field: string
  readonly referenceField: string
  /** `spec.clientConfig.keyRef`. */
  readonly path: string
  /** '' unless it names a file and nothing else. */
  readonly file: string
  /** `namespace/name`; '' unless it names a key of a Secret. */
  readonly secret: string
  readonly key: string
}

export interface Resolved {
  /** The object with every resolvable reference replaced by inline bytes. */
  readonly object: unknown
  readonly problems: readonly FieldError[]
  /** Paths of inline fields that came from references, mapped to the paths of the references. */
  readonly origins: ReadonlyMap<string, string>
  /** Their bytes, base64, in the same order. */
  readonly bytes: readonly string[]
  /** Secrets (`namespace/name`) they came from. */
  readonly secrets: readonly string[]
}

/** `namespace/name` of a Secret. */
export function secretName(namespace: unknown, name: unknown): string {
  const given = typeof namespace === 'string' && namespace !== '' ? namespace : DEFAULT_NAMESPACE
  return `${String(given)}/${String(name)}`
}

/** All references in place of inline bytes. Takes any JSON value. */
export function referencesOf(object: unknown): readonly SecretReferenceAt[] {
  const spec = isRecord(object) ? object['spec'] : undefined
  if (!isRecord(spec)) return []
  const found: SecretReferenceAt[] = []
  for (const [section, fields] of SECTIONS) {
    const members = spec[section]
    if (!isRecord(members)) continue
    for (const [field, referenceField] of Object.entries(fields)) {
      const reference = members[referenceField]
      if (!isRecord(reference) || (members[field] ?? '') !== '') continue
      const { file, name, namespace, key } = reference
      const isFile = typeof file === 'string' && file !== ''
      const isSecret = typeof name === 'string' && name !== ''
      const hasKey = typeof key === 'string' && key !== ''
      found.push({
        section,
        field,
        referenceField,
        path: `spec.${section}.${referenceField}`,
        file: isFile && !isSecret && (key ?? '') === '' && (namespace ?? '') === '' ? file : '',
        secret: !isFile && isSecret && hasKey ? secretName(namespace, name) : '',
        key: hasKey ? key : '',
      })
    }
  }
  return found
}

/** The object with unresolved references. */
export function asWritten(object: unknown): Resolved {
  return withBytes(object, new Map(), [])
}

/** @param bytes of each resolved reference; the others are left alone */
export function withBytes(
  object: unknown,
  bytes: ReadonlyMap<SecretReferenceAt, Buffer>,
  problems: readonly FieldError[],
): Resolved {
  const origins = new Map<string, string>()
  const found: string[] = []
  const spec = isRecord(object) ? object['spec'] : undefined
  if (bytes.size === 0 || !isRecord(object) || !isRecord(spec)) {
    return { object, problems, origins, bytes: found, secrets: [] }
  }
  const sections: Record<string, Record<string, unknown>> = {}
  for (const [{ section, field, referenceField, path }, data] of bytes) {
    const members = sections[section] ?? { ...(isRecord(spec[section]) && spec[section]) }
    sections[section] = members
    const inline = data.toString('base64')
    found.push(inline)
    members[field] = inline
    delete members[referenceField]
    origins.set(`spec.${section}.${field}`, path)
  }
  const secrets = [...new Set([...bytes.keys()].map(({ secret }) => secret))].filter((secret) => secret !== '')
  return { object: { ...object, spec: { ...spec, ...sections } }, problems, origins, bytes: found, secrets }
}

/**
 * The bytes of a Secret's key, or a problem.
 * @param data undefined if the Secret does not exist
 * @param absence the message for that case
 */
export function secretBytes(
  { secret, key, path }: SecretReferenceAt,
  data: ReadonlyMap<string, Buffer> | undefined,
  absence: { readonly message: string; readonly fix: string },
  out: FieldErrors,
): Buffer | undefined {
  const bytes = data?.get(key)
  if (bytes !== undefined && bytes.length > 0) return bytes
  if (data === undefined) out.invalid(path, absence.message, absence.fix)
  else if (bytes === undefined) {
    const known = [...data.keys()].join(', ')
    out.invalid(childPath(path, 'key'), `Secret ${secret} has no key ${shown(key)}`, `its keys are: ${known || 'none'}`)
  } else out.invalid(childPath(path, 'key'), `key ${shown(key)} of Secret ${secret} is empty`, 'fill it')
  return undefined
}

/** White space excluded: one expression for both would search for the end from each blank. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** The data of a v1 Secret; `stringData` takes precedence over `data`, as in an API server. */
export function readSecret(object: Readonly<Record<string, unknown>>, out: FieldErrors): ReadonlyMap<string, Buffer> {
  const keys = new Map<string, Buffer>()
  for (const [field, encoding] of [
    ['data', 'base64'],
    ['stringData', 'utf8'],
  ] as const) {
    const data = object[field] ?? {}
    if (!isRecord(data)) {
      out.invalid(field, 'is not a map', 'write a map of strings')
      continue
    }
    for (const [key, text] of Object.entries(data)) {
      const path = `${field}[${key}]`
      if (typeof text !== 'string') out.invalid(path, 'is not a string', 'put the value in quotes')
      else if (encoding === 'base64' && !BASE64.test(text.replaceAll(/\s/g, ''))) {
        out.invalid(path, 'is not base64', 'encode with base64, or use stringData')
      } else keys.set(key, Buffer.from(text, encoding))
    }
  }
  return keys
}
