// Errors in spec.authentication.jwt, those of kube-apiserver's validation of a JWTAuthenticator.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { checkUpstreamCluster } from './checks.ts'

const SECRET = { namespace: 'portcullis-system', name: 'prod', key: 'k' }
const ISSUER = { url: 'https://login.test', audiences: ['a'] }
const MAPPINGS = { username: { claim: 'sub', prefix: '' } }
const GOOD = { issuer: ISSUER, claimMappings: MAPPINGS }

function found(jwt: unknown, severity = 'error'): string[] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://api.test:6443' }],
      clientConfig: { caRef: SECRET, bearerTokenRef: SECRET },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      authentication: { jwt },
    },
  }
  return checkUpstreamCluster(object, nodePemChecks)
    .filter((one) => one.severity === severity)
    .map(({ path, message }) => `${path.replace('spec.authentication.jwt', 'jwt')} ${message}`)
}

const issuer = (more: object) => [{ ...GOOD, issuer: { ...ISSUER, ...more } }]
const mappings = (more: object) => [{ ...GOOD, claimMappings: { ...MAPPINGS, ...more } }]
const rules = (...claimValidationRules: object[]) => [{ ...GOOD, claimValidationRules }]

const TABLE: readonly (readonly [title: string, jwt: unknown, wanted: readonly string[]])[] = [
  ['one', [GOOD], []],
  ['several', [GOOD, { ...GOOD, issuer: { ...ISSUER, url: 'https://other.test' } }], []],
  [
    'all fields',
    [
      {
        issuer: {
          ...ISSUER,
          discoveryURL: 'https://login.test/configuration',
          audiences: ['a', 'b'],
          audienceMatchPolicy: 'MatchAny',
        },
        claimMappings: { ...MAPPINGS, groups: { claim: 'groups', prefix: 'g:' }, uid: { claim: 'oid' } },
        claimValidationRules: [{ claim: 'hd', requiredValue: 'example.com' }, { claim: 'empty' }],
      },
    ],
    [],
  ],
  ['the same issuer twice', [GOOD, GOOD], ['jwt[1].issuer.url "https://login.test" has an entry already']],
  ['no issuer', [{ claimMappings: MAPPINGS }], ['jwt[0].issuer is required']],
  ['http', issuer({ url: 'http://login.test' }), ['jwt[0].issuer.url "http://login.test" is not an https URL']],
  ['no URL', issuer({ url: 'login.test' }), ['jwt[0].issuer.url "login.test" is not an https URL']],
  ['empty', issuer({ url: '' }), ['jwt[0].issuer.url is empty']],
  [
    'a query',
    issuer({ url: 'https://login.test?a=b' }),
    ['jwt[0].issuer.url "https://login.test?a=b" must not contain a query'],
  ],
  [
    'a fragment',
    issuer({ url: 'https://login.test#a' }),
    ['jwt[0].issuer.url "https://login.test#a" must not contain a fragment'],
  ],
  [
    'a password',
    issuer({ url: 'https://a:b@login.test' }),
    ['jwt[0].issuer.url must not contain a username or password'],
  ],
  [
    'discovery at the issuer',
    issuer({ discoveryURL: 'https://login.test/' }),
    ['jwt[0].issuer.discoveryURL must be different from url'],
  ],
  [
    'the same discovery twice',
    [
      ...issuer({ discoveryURL: 'https://c.test/x' }),
      ...issuer({ url: 'https://other.test', discoveryURL: 'https://c.test/x' }),
    ],
    ['jwt[1].issuer.discoveryURL "https://c.test/x" has an entry already'],
  ],
  ['no audience', issuer({ audiences: [] }), ['jwt[0].issuer.audiences is empty']],
  ['an empty audience', issuer({ audiences: [''] }), ['jwt[0].issuer.audiences[0] is empty']],
  [
    'an audience twice',
    issuer({ audiences: ['a', 'a'], audienceMatchPolicy: 'MatchAny' }),
    ['jwt[0].issuer.audiences[1] is named twice'],
  ],
  [
    'two audiences',
    issuer({ audiences: ['a', 'b'] }),
    ['jwt[0].issuer.audienceMatchPolicy must be MatchAny for multiple audiences'],
  ],
  ['no CA', issuer({ certificateAuthority: 'x' }), ['jwt[0].issuer.certificateAuthority holds no PEM certificate']],
  ['no user name', mappings({ username: {} }), ['jwt[0].claimMappings.username claim or expression is required']],
  [
    'no prefix',
    mappings({ username: { claim: 'sub' } }),
    ['jwt[0].claimMappings.username.prefix is required when claim is set'],
  ],
  [
    'no prefix of groups',
    mappings({ groups: { claim: 'g' } }),
    ['jwt[0].claimMappings.groups.prefix is required when claim is set'],
  ],
  [
    'a prefix of Kubernetes',
    mappings({ groups: { claim: 'g', prefix: 'system:x:' } }),
    [
      'jwt[0].claimMappings.groups.prefix begins with system:: names that begin so are reserved, so that every token would be refused',
    ],
  ],
  [
    'claim and expression',
    mappings({ username: { claim: 'sub', expression: 'claims.sub' } }),
    ["jwt[0].claimMappings.username claim and expression can't both be set"],
  ],
  ['rules without a claim', rules({}), ['jwt[0].claimValidationRules[0] claim or expression is required']],
  [
    'rules for one claim',
    rules({ claim: 'a' }, { claim: 'a' }),
    ['jwt[0].claimValidationRules[1].claim "a" is there twice'],
  ],
  [
    'a message for a claim',
    rules({ claim: 'a', message: 'm' }),
    ['jwt[0].claimValidationRules[0].message may not be specified when claim is set'],
  ],
]
for (const [title, jwt, wanted] of TABLE) {
  test(title, () => assert.deepEqual(found(jwt), wanted))
}

test('expressions', () => {
  const verified = { expression: 'claims.?email_verified.orValue(true) == true', message: 'm' }
  const good = {
    issuer: ISSUER,
    claimMappings: {
      username: { expression: "'oidc:' + claims.email" },
      groups: { expression: "claims.roles.split(',')" },
      uid: { expression: 'claims.oid' },
      extra: [{ key: 'example.com/team', valueExpression: "claims.?team.orValue('')" }],
    },
    claimValidationRules: [{ claim: 'hd' }, verified],
    userValidationRules: [{ expression: "!user.username.startsWith('oidc:robot')" }],
  }
  assert.deepEqual(found([good]), [])
  assert.deepEqual(found([{ ...good, claimValidationRules: [] }]), [
    'jwt[0].claimMappings.username.expression uses claims.email: then claims.email_verified must be used in it, in extra or in claimValidationRules',
  ])
  const extra = [{ key: 'example.com/verified', valueExpression: 'string(claims.email_verified)' }]
  const byExtra = { ...good, claimMappings: { ...good.claimMappings, extra }, claimValidationRules: [] }
  assert.deepEqual(found([byExtra]), [])
  const texts = (jwt: unknown) => found(jwt).map((one) => one.slice(0, 90))
  assert.deepEqual(texts(mappings({ username: { expression: 'claims.sub +' } })), [
    'jwt[0].claimMappings.username.expression is not a valid expression: Unexpected token: EOF',
  ])
  assert.deepEqual(texts(mappings({ username: { expression: 'claims.sub', prefix: 'a' } })), [
    'jwt[0].claimMappings.username.prefix may not be specified when expression is set',
  ])
  assert.deepEqual(texts(rules({ expression: 'claims.admin' })), [
    'jwt[0].claimValidationRules[0].expression must evaluate to bool',
  ])
  assert.deepEqual(texts(rules({ expression: 'true' }, { expression: 'true', requiredValue: 'x' })), [
    'jwt[0].claimValidationRules[1].requiredValue may not be specified when expression is set',
    'jwt[0].claimValidationRules[1].expression "true" is there twice',
  ])
  const users = (...userValidationRules: object[]) => texts([{ ...GOOD, userValidationRules }])
  assert.deepEqual(users({ expression: 'user.name == ""' }), [
    'jwt[0].userValidationRules[0].expression is not a valid expression: No such key: name',
  ])
  assert.deepEqual(users({ expression: '' }), ['jwt[0].userValidationRules[0].expression is empty'])
  assert.deepEqual(users({ expression: "bytes(user.username) == b'a'" }), [
    'jwt[0].userValidationRules[0].expression has the function bytes, which is not supported wi',
  ])
})

test('keys of extra', () => {
  const errors = (key: string) =>
    found(mappings({ extra: [{ key, valueExpression: 'claims.a' }] })).filter((one) => one.includes('.key'))
  assert.deepEqual(errors('example.com/team'), [])
  for (const key of [
    'team',
    '/team',
    'example.com/',
    'Example.com/team',
    'kubernetes.io/a',
    'a.k8s.io/b',
    'ex_ample.com/a',
  ]) {
    assert.equal(errors(key).length, 1, key)
  }
})

test('a provider on this machine is a warning', () => {
  assert.equal(found(issuer({ url: 'https://127.0.0.1:8443' }), 'warning').length, 1)
  assert.equal(found(issuer({ url: 'https://169.254.169.254' }), 'warning').length, 1)
  assert.equal(found([GOOD], 'warning').length, 0)
})

test('patterns: invalid ones, and all of a cluster together', () => {
  assert.deepEqual(found(rules({ expression: "claims.sub.matches('(a')" })), [
    'jwt[0].claimValidationRules[0].expression is not a valid expression: error parsing regexp: missing closing ): `(a`',
  ])
  const many = Array.from({ length: 64 }, (_, n) => ({
    ...GOOD,
    issuer: { ...ISSUER, url: `https://login-${n}.test` },
    userValidationRules: [{ expression: `user.username.matches('^[a-z0-9]{1000}${n}$')` }],
  }))
  const refused = found(many)
  assert.ok(refused.length > 50 && refused.length < 64, `${refused.length} are refused`)
  assert.match(refused[0] ?? '', /the patterns of the object are too large: shorten them, or repeat less in \{\}$/)
})
