// The schema of spec.authentication.jwt: the JWTAuthenticator of kube-apiserver's AuthenticationConfiguration (apiserver.config.k8s.io/v1).

import { atMost, flag, list, object, oneOfOrNone, text } from '../../../kit/api/json/json-schema.ts'
import { SIZES } from './cel/cel-rules.ts'

const claim = (what: string) => text(`The claim ${what}.`, { maxLength: SIZES.claim })
const expression = (what: string) => text(`A CEL expression ${what}.`, { maxLength: SIZES.expression })

const issuer = object(
  'The OpenID provider.',
  {
    url: text('https URL, exactly as in the `iss` claim of its tokens. No two entries may have the same.', {
      maxLength: SIZES.endpoint,
    }),
    discoveryURL: text(
      'https URL of its OpenID configuration. Default: `url` followed by `/.well-known/openid-configuration`.',
      { maxLength: SIZES.endpoint },
    ),
    certificateAuthority: text(
      "CAs that verify its certificate, PEM. Default: those that the gateway's machine trusts.",
      {
        maxLength: SIZES.certificateAuthority,
      },
    ),
    audiences: atMost(
      SIZES.audiences,
      list(
        'Audiences; the token must be issued for at least one of them.',
        text('An audience.', { maxLength: SIZES.claim }),
        1,
      ),
    ),
    audienceMatchPolicy: oneOfOrNone('MatchAny; required with several audiences.', ['MatchAny']),
  },
  ['url', 'audiences'],
)

const prefixed = (what: string) =>
  object(`${what}: exactly one of claim and expression.`, {
    claim: claim('that is used'),
    prefix: text('Prefix of the value. Required with claim; may be empty.', { maxLength: SIZES.claim }),
    expression: expression('of `claims`'),
  })

const extraMapping = object(
  'One key of `extra`.',
  {
    key: text('In lower case, with a domain in front: `example.com/team`.', { maxLength: SIZES.claim }),
    valueExpression: expression('of `claims` with a string or a list of strings'),
  },
  ['key', 'valueExpression'],
)

const claimMappings = object(
  'How claims of a token become the user.',
  {
    username: prefixed('The name of the user'),
    groups: prefixed('The groups of the user, a string or a list of strings'),
    uid: object('The uid of the user: one of claim and expression. Default: none.', {
      claim: claim('that is used'),
      expression: expression('of `claims`'),
    }),
    extra: atMost(SIZES.extraMappings, list('Further information about the user.', extraMapping)),
  },
  ['username'],
)

const claimValidationRule = object('A token must have the claim with this value, or satisfy the expression.', {
  claim: claim('that is required'),
  requiredValue: text('Its value. Default: empty.', { maxLength: SIZES.expression }),
  expression: expression('of `claims`, which must be true'),
  message: text('Reason for refusing a token that does not satisfy the expression; for the log.', {
    maxLength: SIZES.expression,
  }),
})

const userValidationRule = object(
  'A user must satisfy the expression.',
  {
    expression: expression('of `user` (username, uid, groups, extra), which must be true'),
    message: text('Reason for refusing a user that does not satisfy it; for the log.', { maxLength: SIZES.expression }),
  },
  ['expression'],
)

const jwtAuthenticator = object(
  'Tokens of one OpenID provider.',
  {
    issuer,
    claimMappings,
    claimValidationRules: atMost(SIZES.validationRules, list('All must hold.', claimValidationRule)),
    userValidationRules: atMost(SIZES.validationRules, list('All must hold.', userValidationRule)),
    // Not a field of kube-apiserver.
    backchannelLogout: flag(
      'Whether the provider notifies the gateway of logouts (OpenID Connect Back-Channel Logout). A logout aborts the requests of the session, and its ' +
        'tokens are refused. Tokens must then have sub and iat, and be valid for at most 24 hours. Default false.',
    ),
  },
  ['issuer', 'claimMappings'],
)

export const JWT_SCHEMA = atMost(
  SIZES.issuers,
  list(
    'OpenID providers whose tokens the gateway verifies itself, as kube-apiserver does with an AuthenticationConfiguration ' +
      '(apiserver.config.k8s.io/v1). Tokens of other issuers, and tokens that their entry does not accept, are reviewed by the cluster.',
    jwtAuthenticator,
  ),
)
