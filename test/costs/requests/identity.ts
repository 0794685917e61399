// The identity that a request claims: impersonation, tokens, subjects of certificates.

import { readImpersonation } from '../../../src/gateway/core/identity/impersonate.ts'
import { checkAudienceAndTimes, isRefusedClaims, userFromClaims } from '../../../src/gateway/core/identity/oidc-user.ts'
import type { HeaderList } from '../../../src/kit/api/stream.ts'
import { userFromCertificate } from '../../../src/pki/core/user-from-cert.ts'
import { readJwt } from '../../../src/pki/io/jwt.ts'
import { type Parser, parser, parserOf } from '../parser.ts'
import { KIB, MIB, repeat } from '../shapes.ts'

const MAX_TOKEN = 64 * KIB
const OPTIONS = {
  issuer: 'https://issuer',
  clientId: 'a',
  usernameClaim: 'sub',
  usernamePrefix: '',
  groupsClaim: 'groups',
  groupsPrefix: 'oidc:',
  requiredClaims: {},
}
const encoded = (text: string): string => Buffer.from(text).toString('base64url')
const HEADER = encoded('{"alg":"RS256"}')

/** A line for each field. */
function lines(text: string): HeaderList {
  return text.split('\n').flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)])
}

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'impersonation',
    limit: MIB,
    prepare: lines,
    read: readImpersonation,
    tokens: [
      'impersonate-user:a\n',
      'impersonate-group:',
      'impersonate-extra-',
      '%41',
      '%',
      '\n',
      ':',
      'Ã',
      'system:serviceaccount:',
    ],
    shapes: {
      groups: repeat('impersonate-group:a\n', 'impersonate-user:a\n'),
      'groups that differ': repeat('impersonate-group:a{n}\n', 'impersonate-user:a\n'),
      'extra keys': repeat('impersonate-extra-a{n}:b\n', 'impersonate-user:a\n'),
      'a long extra key': repeat('%61', 'impersonate-user:a\nimpersonate-extra-', ':b'),
      'an extra key of percent signs': repeat('%', 'impersonate-user:a\nimpersonate-extra-', ':b'),
      'a long name': repeat('a', 'impersonate-user:'),
      'a service account of colons': repeat(':', 'impersonate-user:system:serviceaccount:a'),
      'a service account of dots': repeat('a.', 'impersonate-user:system:serviceaccount:a:', 'a'),
      'a service account of hyphens': repeat('-', 'impersonate-user:system:serviceaccount:a'),
      'almost UTF-8': repeat('\xc3\xa9', 'impersonate-user:', '\xc3'),
      'names that are almost known': repeat('impersonate:a\n', 'impersonate-user:a\n'),
    },
  }),
  parser({
    name: 'JSON Web Token',
    limit: MAX_TOKEN,
    read: (token) => {
      const jwt = readJwt(token)
      if (jwt === undefined) return undefined
      const refused = checkAudienceAndTimes({ ...jwt.claims, aud: 'a', exp: 2 }, OPTIONS, 1)
      const user = refused ?? userFromClaims(jwt.claims, OPTIONS)
      return isRefusedClaims(user) ? undefined : user
    },
    tokens: ['.', HEADER, encoded('{}'), encoded('{"aud":"a"}'), 'eyJ', '=', '-', '_', 'A'],
    shapes: {
      dots: repeat('.'),
      'a long signature': repeat('A', `${HEADER}.${encoded('{}')}.`),
      'a long header': repeat('A'),
      'claims of brackets': (length) => `${HEADER}.${encoded('['.repeat((length * 3) / 4))}.AA`,
      'claims that differ': (length) =>
        `${HEADER}.${encoded(JSON.stringify(Object.fromEntries(Array.from({ length: length / 13 }, (_, n) => [`a${n}`, n]))))}.AA`,
      groups: (length) =>
        `${HEADER}.${encoded(JSON.stringify({ sub: 'a', groups: Array.from({ length: length / 10 }, (_, n) => `g${n}`) }))}.AA`,
      audiences: (length) =>
        `${HEADER}.${encoded(JSON.stringify({ aud: Array.from({ length: length / 10 }, (_, n) => `g${n}`) }))}.AA`,
      'a token that is not base64': repeat('?', `${HEADER}.`, '.AA'),
    },
  }),
  parserOf({
    name: 'subject of a certificate',
    limit: MIB,
    prepare: (text) => ({
      attributes: text.split('\n').map((line) => ({ type: line.slice(0, line.indexOf('=')), value: line.slice(2) })),
    }),
    read: (subject) => userFromCertificate(subject, 'ab:cd'),
    tokens: ['CN=a\n', 'O=', '\n', 'system:masters', '1.3.6.1.4.1.57683.2=a\n'],
    shapes: {
      organisations: repeat('O=a{n}\n', 'CN=a\n'),
      'common names': repeat('CN=a{n}\n'),
      'a long name': repeat('a', 'CN='),
      uids: repeat('1.3.6.1.4.1.57683.2=a\n', 'CN=a\n'),
    },
  }),
]
