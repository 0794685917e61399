// Documents that decide who a user is and what the user may do: answers to reviews, and the keys of OpenID providers.

import { readAccess } from '../../../src/gateway/io/reviews/access-review.ts'
import { readVerdict } from '../../../src/gateway/io/reviews/token-review.ts'
import { type AnswerLimits, DOCUMENT, REVIEW } from '../../../src/kube/core/answers/answer-limits.ts'
import { AnswerReader } from '../../../src/kube/core/answers/answer-reader.ts'
import { readKeySet } from '../../../src/pki/io/id-tokens/signing-keys.ts'
import { JSON_SHAPES, JSON_TOKENS } from '../bodies/json.ts'
import { type Parser, parser } from '../parser.ts'
import { list, MIB, repeat } from '../shapes.ts'

const USER = '{"status":{"authenticated":true,"user":{"username":"a"'
const KEY = '{"kid":"a","kty":"RSA","use":"sig","alg":"RS256","e":"AQAB"'

const UNLIMITED = { take: () => true, give: () => undefined }

function counted(text: string, limits: AnswerLimits = REVIEW): unknown {
  const reader = new AnswerReader(limits.bytes, UNLIMITED)
  reader.add(Buffer.from(text))
  return JSON.parse(reader.counted(limits, 1))
}

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'answer to a TokenReview',
    limit: 3 * MIB,
    fillsMaps: true,
    read: (text) => readVerdict(counted(text), ['a']),
    tokens: JSON_TOKENS,
    shapes: {
      ...JSON_SHAPES,
      groups: list('"g{n}"', `${USER},"groups":[`, ']},"audiences":["a"]}}'),
      'groups of a wrong type': list('1', `${USER},"groups":[`, ']},"audiences":["a"]}}'),
      'extra keys': list('"k{n}":["v"]', `${USER},"extra":{`, '}},"audiences":["a"]}}'),
      'values of an extra key': list('"v{n}"', `${USER},"extra":{"k":[`, ']}},"audiences":["a"]}}'),
      audiences: list('"b{n}"', `${USER}},"audiences":[`, ']}}'),
    },
  }),
  parser({
    name: 'answer to a SubjectAccessReview',
    limit: 3 * MIB,
    fillsMaps: true,
    read: (text) => readAccess(counted(text)),
    tokens: JSON_TOKENS,
    shapes: {
      'a long reason': repeat('a', '{"status":{"allowed":false,"reason":"', '"}}'),
      'unknown fields': list('"k{n}":1', '{"status":{', '}}'),
    },
  }),
  parser({
    name: 'JWK Set',
    limit: MIB,
    fillsMaps: true,
    read: (text) => readKeySet(counted(text, DOCUMENT)),
    tokens: [...JSON_TOKENS, KEY, '"n":"AQAB"'],
    shapes: {
      'keys that are none': list('1', '{"keys":[', ']}'),
      'keys of a wrong type': list('{"kid":"a{n}","kty":"oct"}', '{"keys":[', ']}'),
      'keys without a modulus': list(`${KEY}}`, '{"keys":[', ']}'),
      'a long modulus': repeat('A', `{"keys":[${KEY},"n":"`, '"}]}'),
      'a long exponent': repeat('A', '{"keys":[{"kty":"RSA","n":"AQAB","e":"', '"}]}'),
    },
  }),
]
