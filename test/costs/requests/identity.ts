// The identity that a request claims: impersonation, tokens, subjects of certificates.

import { readImpersonation } from '../../../src/gateway/core/identity/impersonate.ts'
import {
  LOGOUT_FORM,
  readLogoutClaims,
  readLogoutForm,
  sessionOf,
} from '../../../src/gateway/core/logout/token-session.ts'
import { MAX_LOGOUT_BYTES } from '../../../src/gateway/request/backchannel-logout.ts'
import { networkFrom } from '../../../src/kit/api/expressions/addresses.ts'
import { evaluate } from '../../../src/kit/api/expressions/evaluate.ts'
import { isInvalidExpression, parseExpression } from '../../../src/kit/api/expressions/expression.ts'
import { Pattern } from '../../../src/kit/api/expressions/patterns.ts'
import { parseQuantity } from '../../../src/kit/api/expressions/quantities.ts'
import { durationOf, timestampOf } from '../../../src/kit/api/expressions/times.ts'
import { Cost, ExpressionFault } from '../../../src/kit/api/expressions/values.ts'
import type { HeaderList } from '../../../src/kit/api/stream.ts'
import { checkAudienceAndTimes, isRefusedClaims, userFromClaims } from '../../../src/pki/core/id-tokens/claims-user.ts'
import { userFromCertificate } from '../../../src/pki/core/user-from-cert.ts'
import { readJwt } from '../../../src/pki/io/jwt.ts'
import { type Parser, parser, parserOf } from '../parser.ts'
import { KIB, MIB, repeat } from '../shapes.ts'

const MAX_TOKEN = 64 * KIB
const RULES = {
  issuer: 'https://issuer',
  audiences: ['a'],
  username: { claim: 'sub', prefix: '' },
  groups: { claim: 'groups', prefix: 'oidc:' },
  uidClaim: '',
  requiredClaims: {},
}
const CLAIMS = { a: 'a', list: ['a', 'b'] }
const EXPRESSIONS = [
  "claims.list.map(x, 'p:' + x).filter(x, x.endsWith('a')).size() > 0",
  "claims.text.split(',').exists(x, x == 'zz')",
  "claims.text.lowerAscii().replace('a', 'bb').indexOf('zz')",
  "claims.list.join('+') == claims.text",
  'claims.list.all(x, claims.list.exists(y, x == y))',
].map((text) => {
  const parsed = parseExpression(text, 'claims')
  if (isInvalidExpression(parsed)) throw new Error(parsed.invalid)
  return parsed
})
const encoded = (text: string): string => Buffer.from(text).toString('base64url')
const PATTERNS = ['(a+)+$', '(a|a?)+b', '(?:[ab]?){20}[ab]{20}c', 'a.*c|a', '(.*)(.*)(.*)x', '\\b', ''].map(
  (pattern) => new Pattern(pattern, new Cost()),
)
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
      const refused = checkAudienceAndTimes({ ...jwt.claims, aud: 'a', exp: 2 }, RULES, 1)
      const user = refused ?? userFromClaims(jwt.claims, RULES)
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
  parser({
    name: 'logout token',
    limit: MAX_LOGOUT_BYTES,
    read: (body) => {
      const token = readLogoutForm(LOGOUT_FORM, body)
      const jwt = token === undefined ? undefined : readJwt(token)
      if (jwt === undefined) return undefined
      sessionOf({ sub: 'a', iat: 1, exp: 2, ...jwt.claims }, ['a'], 'source')
      return readLogoutClaims(jwt.header, jwt.claims)
    },
    tokens: ['logout_token=', '&', '%', '%41', '+', '=', `${HEADER}.${encoded('{}')}.AA`],
    shapes: {
      fields: repeat('a=b&', '', 'logout_token=a'),
      'fields that differ': repeat('a{n}=b&', '', 'logout_token=a'),
      'tokens that are more than one': repeat('logout_token=a&'),
      'percent signs': repeat('%', 'logout_token='),
      'characters by their number': repeat('%41', 'logout_token='),
      'many audiences': (length) =>
        `logout_token=${HEADER}.${encoded(JSON.stringify({ aud: Array.from({ length: length / 10 }, (_, n) => `g${n}`) }))}.AA`,
      'many events': (length) =>
        `logout_token=${HEADER}.${encoded(JSON.stringify({ events: Object.fromEntries(Array.from({ length: length / 13 }, (_, n) => [`a${n}`, n])) }))}.AA`,
    },
  }),
  parser({
    name: 'CEL expression',
    limit: 4 * KIB,
    read: (text) => {
      const parsed = parseExpression(text, 'claims')
      return isInvalidExpression(parsed) ? undefined : evaluate(parsed, CLAIMS, new Cost())
    },
    tokens: [
      'claims',
      '.a',
      '.?b',
      "['c']",
      '(',
      ')',
      '+',
      ' && ',
      '"x"',
      '.map(x, x)',
      '.exists(x, x == 1)',
      '[',
      ']',
      '{',
      '}',
      ' ? ',
      ' : ',
      '1',
    ],
    shapes: {
      sums: repeat(" + 'a'", "'a'"),
      'alternatives that have no value': repeat(' || claims.a.b.c', 'claims.x'),
      brackets: repeat('('),
      lists: repeat('['),
      fields: repeat('.a', 'claims'),
      'names that differ': repeat(' + claims.a{n}', 'claims.a'),
      'a long text': repeat('a', "'", "'"),
      'a text that is not closed': repeat('\\"', '"'),
      'lists over lists': repeat('.map(x, claims.list)', 'dyn(claims.list)'),
      conditions: repeat('true ? 1 : ', '', '2'),
      digits: repeat('1'),
      negations: repeat('!', '', 'true'),
    },
  }),
  parserOf({
    name: 'claims of expressions',
    limit: 16 * KIB,
    prepare: (text) => ({ list: text.split(','), text }),
    read: (claims) => {
      const cost = new Cost()
      return EXPRESSIONS.map((expression) => {
        try {
          return evaluate(expression, claims, cost)
        } catch (error) {
          if (error instanceof ExpressionFault) return undefined
          throw error
        }
      })
    },
    tokens: ['a', ',', 'ä', ':', '😀'],
    shapes: {
      'many items': repeat('a,'),
      'items that differ': repeat('a{n},'),
      'a long item': repeat('a'),
      'characters of two units': repeat('😀'),
    },
  }),
  parser({
    name: 'pattern of a claim',
    limit: MAX_TOKEN,
    read: (pattern) => new Pattern(pattern, new Cost()).find('aaaa', 4, new Cost()),
    tokens: [
      '(',
      ')',
      '[',
      ']',
      '[^',
      '{2}',
      '{9,}',
      '{0,99}',
      '*',
      '+?',
      '|',
      '\\pL',
      '(?i)',
      '\\Q',
      '\\E',
      'a',
      '-',
      'ä',
      '[:',
      ':]',
    ],
    shapes: {
      'groups in groups': (length) => `${'('.repeat(length / 2)}${')'.repeat(length / 2)}`,
      'groups that are not closed': repeat('('),
      classes: repeat('[a-z]'),
      'a class of one character each': repeat('b', '[', ']'),
      'a class that is not closed': repeat('[:', '['),
      'names that are not closed': repeat('\\p{'),
      'classes of Unicode': repeat('\\pL'),
      'ranges in all cases': repeat('[B-\u1fff]', '(?i)'),
      repetitions: repeat('a{99}'),
      'repetitions of repetitions': repeat('{9}', 'a'),
      'alternatives that begin alike': repeat('|ab{n}', 'ab'),
      'what may be absent': repeat('a?'),
      'quoted text that does not end': repeat('\\Q('),
      braces: repeat('{'),
    },
  }),
  parserOf({
    name: 'text of a pattern',
    limit: MAX_TOKEN,
    prepare: (text) => text,
    read: (text) => {
      const cost = new Cost()
      return PATTERNS.map((pattern) => {
        try {
          return pattern.find(text, Number.POSITIVE_INFINITY, cost)
        } catch (error) {
          if (error instanceof ExpressionFault) return undefined
          throw error
        }
      })
    },
    tokens: ['a', 'aa', 'b', 'c', ',', '\n', 'ä', '😀'],
    shapes: {
      'one character': repeat('a'),
      'one character, and another at the end': repeat('a', '', 'c'),
      'matches everywhere': repeat('ab,'),
      'characters of two units': repeat('😀'),
      lines: repeat('a{n}\n'),
    },
  }),
  parser({
    name: 'time in a claim',
    limit: MAX_TOKEN,
    read: (text) => timestampOf(text, new Cost()).text,
    tokens: ['2027-01-02T03:04:05Z', '.123', ',5', '+02:00', 'Z', '0', ':', '-'],
    shapes: {
      digits: repeat('1'),
      'parts of a second': repeat('0', '2027-01-02T03:04:05.', 'Z'),
      'parts of a second without a zone': repeat('0', '2027-01-02T03:04:05.'),
      zones: repeat('+02:00', '2027-01-02T03:04:05'),
    },
  }),
  parser({
    name: 'duration in a claim',
    limit: MAX_TOKEN,
    read: (text) => durationOf(text, new Cost()).text,
    tokens: ['1', 'h', 'm', 's', 'ns', '.', '-', '0'],
    shapes: {
      amounts: repeat('0h'),
      digits: repeat('1', '', 's'),
      zeros: repeat('0', '', '1s'),
      'a fraction': repeat('0', '1.', 's'),
      'a fraction of nines': repeat('9', '0.', 'h'),
      'a fraction without a unit': repeat('0', '1.'),
      points: repeat('.'),
    },
  }),
  parser({
    name: 'quantity in a claim',
    limit: MAX_TOKEN,
    read: (text) => parseQuantity(text, new Cost()),
    tokens: ['1', '0', '.', '-', 'e', 'E', 'Ki', 'm', '+'],
    shapes: {
      digits: repeat('9'),
      zeros: repeat('0'),
      'a fraction': repeat('1', '.'),
      points: repeat('.'),
      'a long suffix': repeat('e', '1'),
      'a long exponent': repeat('1', '1e'),
      signs: repeat('-'),
    },
  }),
  parser({
    name: 'network in a claim',
    limit: MAX_TOKEN,
    read: (text) => networkFrom(text, new Cost())?.text,
    tokens: ['10.', '0', '::', 'ff', ':', '/8', '/128', '%'],
    shapes: {
      fields: repeat('1.', '', '1/8'),
      groups: repeat('1:', '', '1/8'),
      gaps: repeat('::'),
      slashes: repeat('/'),
      digits: repeat('1', '10.0.0.0/'),
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
