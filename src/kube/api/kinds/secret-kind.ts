// Secret (v1): keys, certificates and tokens that UpstreamClusters refer to.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { base64, flag, kubeObject, map, text } from '../../../kit/api/json/json-schema.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable } from '../../../kit/api/validation/field-errors.ts'
import type { PemChecks } from '../../../kit/api/validation/pem-checks.ts'
import type { ResourceKind } from '../resource-kind.ts'

/** Bytes of all values together (core.MaxSecretSize). */
const MAX_BYTES = 1_048_576
const KEY = /^[-._a-zA-Z0-9]{1,253}$/
const KEY_FIX = 'at most 253 of them, and not beginning with ..'

/** Required keys by Secret type (ValidateSecret); where two are named, one is enough. */
const KEYS_OF_TYPE: ReadonlyMap<unknown, readonly (readonly string[])[]> = new Map([
  ['kubernetes.io/tls', [['tls.crt'], ['tls.key']]],
  ['kubernetes.io/ssh-auth', [['ssh-privatekey']]],
  ['kubernetes.io/basic-auth', [['username', 'password']]],
  ['kubernetes.io/dockercfg', [['.dockercfg']]],
  ['kubernetes.io/dockerconfigjson', [['.dockerconfigjson']]],
])

// Errors for which kube-apiserver has a text carry no fix.
export const SECRETS: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  listKind: 'SecretList',
  plural: 'secrets',
  singular: 'secret',
  shortNames: [],
  categories: [],
  namespaced: true,
  hasStatus: false,
  hasGeneration: false,
  schema: kubeObject('Secret holds bytes that only few may read. At most 1 MiB.', 'v1', 'Secret', {
    data: map('The bytes by key, base64. Keys are made of letters, digits, -, _ and .', base64('Bytes, base64.')),
    stringData: map(
      'Texts that are written into data, replacing what has the same key there. Never read back.',
      text('A text.'),
    ),
    type: text('What the Secret is for, such as kubernetes.io/tls; decides which keys it needs. Default Opaque.'),
    immutable: flag('Data cannot be changed any more, nor this field. Default false.'),
  }),
  columns: [
    { name: 'Type', type: 'string', description: 'What the Secret is for.', jsonPath: '.type' },
    { name: 'Data', type: 'string', description: 'How many keys it has.', jsonPath: '.data', cell: countData },
    { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['type'],
  check: checkSecret,
}

/** Number of keys in `data`. */
export function countData({ data }: JsonObject): number {
  return isRecord(data) ? Object.keys(data).length : 0
}

/** `stringData` has already been merged into `data`. */
function checkSecret(
  object: JsonObject,
  before: JsonObject | undefined,
  pem: PemChecks,
): ReturnType<ResourceKind['check']> {
  const out = new FieldErrors()
  const data = isRecord(object['data']) ? object['data'] : {}
  let bytes = 0
  for (const [key, value] of Object.entries(data)) {
    if (!KEY.test(key) || key === '.' || key.startsWith('..')) {
      out.invalid(`data[${key}]`, 'a valid config key must consist of alphanumeric characters, -, _ or .', KEY_FIX)
    }
    bytes += typeof value === 'string' ? Buffer.byteLength(value, 'base64') : 0
  }
  if (bytes > MAX_BYTES) out.tooLong('data', `Too long: may not be more than ${MAX_BYTES} bytes`)
  for (const names of KEYS_OF_TYPE.get(object['type']) ?? []) {
    if (names.some((name) => Object.hasOwn(data, name))) continue
    out.required(`data[${names[0]}]`, 'is required', '')
  }
  if (before !== undefined) checkChange(object, before, out)
  if (object['type'] === 'kubernetes.io/tls') checkPair(data, pem, out)
  return reportable(out.found, out.more)
}

/** ValidateSecretUpdate. */
function checkChange(object: JsonObject, before: JsonObject, out: FieldErrors): void {
  if ((object['type'] ?? 'Opaque') !== (before['type'] ?? 'Opaque')) {
    out.invalid('type', 'field is immutable', '')
  }
  if (before['immutable'] !== true) return
  if (object['immutable'] !== true) {
    out.forbidden('immutable', 'field is immutable when `immutable` is set', '')
  }
  if (!sameData(object['data'], before['data'])) {
    out.forbidden('data', 'field is immutable when `immutable` is set', '')
  }
}

function sameData(a: unknown, b: unknown): boolean {
  const left = Object.entries(isRecord(a) ? a : {})
  const right = isRecord(b) ? b : {}
  return (
    left.length === Object.keys(right).length &&
    left.every(([key, value]) => Object.hasOwn(right, key) && right[key] === value)
  )
}

/** A mismatched pair is stored with a warning, as kube-apiserver does. */
function checkPair(data: Readonly<Record<string, unknown>>, pem: PemChecks, out: FieldErrors): void {
  const cert = textOf(data['tls.crt'])
  const key = textOf(data['tls.key'])
  if (cert === undefined || key === undefined) return
  const certError = pem.certificatesError(cert)
  const keyError = pem.privateKeyError(key)
  if (certError !== '') out.warning('data[tls.crt]', certError, 'write a certificate and its chain as PEM')
  if (keyError !== '') out.warning('data[tls.key]', keyError, 'write an unencrypted private key as PEM')
  if (certError === '' && keyError === '' && !pem.keyMatches(cert, key)) {
    out.warning('data[tls.key]', 'is not the key of the certificate in tls.crt', 'use the two of one pair')
  }
}

function textOf(data: unknown): string | undefined {
  return typeof data === 'string' ? Buffer.from(data, 'base64').toString('utf8') : undefined
}
