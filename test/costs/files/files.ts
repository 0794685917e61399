// Files that operators and their tools write: a mistake in one must not hold up what serves.

import { readAuditPolicy } from '../../../src/audit/core/policy.ts'
import { AuditRules } from '../../../src/audit/core/rules.ts'
import { readSecret } from '../../../src/gateway/io/secrets/secret-references.ts'
import { FileParser } from '../../../src/gateway/io/sources/files/parse.ts'
import { FieldErrors } from '../../../src/kit/api/validation/field-errors.ts'
import { currentUserIn } from '../../../src/kube/io/current-user.ts'
import { nodePemChecks } from '../../../src/pki/io/pem-checks.ts'
import { JSON_TOKENS } from '../bodies/json.ts'
import { YAML_SHAPES, YAML_TOKENS } from '../bodies/yaml.ts'
import { type Parser, parser } from '../parser.ts'
import { KIB, list, MIB, repeat } from '../shapes.ts'

const CONFIG = 'kind: Config\n'
const POLICY = '{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":['

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'file of objects',
    // All errors of a file are told: it has no limit, and takes long where there are many.
    limit: 32 * KIB,
    read: (text) => new FileParser().parse('a.yaml', text),
    tokens: YAML_TOKENS,
    shapes: YAML_SHAPES,
  }),
  parser({
    name: 'kubeconfig of a user',
    limit: 128 * KIB,
    read: (text) => currentUserIn(text, 'a'),
    tokens: [...YAML_TOKENS, CONFIG, 'users:\n', 'current-context: a\n'],
    shapes: {
      kinds: repeat('kind'),
      'a kind and blanks': repeat(' ', 'kind', ':'),
      users: repeat('- {name: a{n}, user: {}}\n', `${CONFIG}users:\n`),
      'keys that differ': repeat('a{n}: 1\n', CONFIG),
      contexts: repeat(
        '- {name: a{n}, context: {user: b}}\n',
        `${CONFIG}current-context: a0\nusers: [{name: b, user: {}}]\ncontexts:\n`,
      ),
      'aliases of aliases': repeat('- [*a, *a]\n', `${CONFIG}b: &a [1, 2]\nusers:\n`),
      'closing braces': repeat('}', CONFIG),
    },
  }),
  parser({
    name: 'Secret in a file',
    limit: MIB,
    fillsMaps: true,
    read: (text) => readSecret(JSON.parse(text), new FieldErrors()),
    tokens: [...JSON_TOKENS, '\\n', '=', 'eA==', '"data":{'],
    shapes: {
      values: list('"k{n}":"eA=="', '{"data":{', '}}'),
      'values that are no base64': list('"k{n}":"?"', '{"data":{', '}}'),
      'line ends in a value': repeat('\\n', '{"data":{"a":"', '?"}}'),
      'blanks in a value': repeat(' ', '{"data":{"a":"', '?"}}'),
      'equals signs in a value': repeat('=', '{"data":{"a":"', '"}}'),
      'a long value': repeat('eA==', '{"stringData":{"a":"', '"}}'),
    },
  }),
  parser({
    name: 'certificates and keys',
    limit: MIB,
    read: (text) => [nodePemChecks.certificatesError(text), nodePemChecks.privateKeyError(text)],
    tokens: [
      '-----BEGIN CERTIFICATE-----',
      '-----END CERTIFICATE-----',
      '-----BEGIN PRIVATE KEY-----',
      'MAAA',
      '\n',
      '-',
      ' ',
    ],
    shapes: {
      'beginnings of certificates': repeat('-----BEGIN CERTIFICATE-----'),
      'certificates without content': repeat('-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n'),
      'ends of certificates': repeat('-----END CERTIFICATE-----', '-----BEGIN CERTIFICATE-----'),
      hyphens: repeat('-'),
      'a long certificate': repeat('MAAA\n', '-----BEGIN CERTIFICATE-----\n', '-----END CERTIFICATE-----\n'),
      'a long key': repeat('MAAA\n', '-----BEGIN PRIVATE KEY-----\n', '-----END PRIVATE KEY-----\n'),
      'beginnings of keys': repeat('-----BEGIN ENCRYPTED PRIVATE KEY'),
    },
  }),
  parser({
    name: 'audit policy',
    limit: 256 * KIB,
    fillsMaps: true,
    read: (text) => {
      const policy = readAuditPolicy(JSON.parse(text), new FieldErrors())
      return policy && new AuditRules(policy)
    },
    tokens: [...JSON_TOKENS, '{"level":"None"}', '"users":[', '"resources":[', '*', '"nonResourceURLs":['],
    shapes: {
      rules: list('{"level":"None","users":["a{n}"]}', POLICY, ']}'),
      'rules without a level': list('{}', POLICY, ']}'),
      users: list('"a{n}"', `${POLICY}{"level":"None","users":[`, ']}]}'),
      resources: list('{"group":"a{n}","resources":["pods"]}', `${POLICY}{"level":"None","resources":[`, ']}]}'),
      'unknown fields': list('"k{n}":1', `${POLICY}{"level":"None",`, '}]}'),
      'a path of stars': repeat('*', `${POLICY}{"level":"None","nonResourceURLs":["/`, 'a"]}]}'),
      'stars at the end': repeat('*', `${POLICY}{"level":"None","nonResourceURLs":["/`, '"]}]}'),
      paths: list('"/a{n}*"', `${POLICY}{"level":"None","nonResourceURLs":[`, ']}]}'),
    },
  }),
]
