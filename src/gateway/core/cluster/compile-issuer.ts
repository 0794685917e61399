// An entry of spec.authentication.jwt -> the rules by which its tokens are verified.

import type { ClaimMapping, IssuerExpressions } from '../../../pki/core/id-tokens/issuer-rules.ts'
import type { JwtAuthenticator } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { CompiledIssuer } from './compiled-cluster.ts'

export function compileIssuer(authenticator: JwtAuthenticator): CompiledIssuer {
  const { issuer, claimMappings, claimValidationRules = [], backchannelLogout = false } = authenticator
  const { url, discoveryURL: discoveryUrl = '', certificateAuthority: ca = '', audiences } = issuer
  const { username, groups, uid } = claimMappings
  const required = claimValidationRules.flatMap(({ claim = '', requiredValue = '' }) =>
    claim === '' ? [] : [[claim, requiredValue] as const],
  )
  const expressions = compileExpressions(authenticator)
  return {
    rules: {
      issuer: url,
      audiences,
      username: compileMapping(username),
      groups: groups?.claim === undefined ? undefined : compileMapping(groups),
      uidClaim: uid?.claim ?? '',
      requiredClaims: Object.fromEntries(required),
      ...(expressions !== undefined && { expressions }),
    },
    keys: JSON.stringify([url, discoveryUrl, ca]),
    discoveryUrl,
    ca,
    ...(backchannelLogout && { endsSessions: true }),
  }
}

function compileMapping({ claim = '', prefix = '' }: Partial<ClaimMapping>): ClaimMapping {
  return { claim, prefix }
}

function compileExpressions({
  claimMappings: { username, groups, uid, extra = [] },
  claimValidationRules = [],
  userValidationRules = [],
}: JwtAuthenticator): IssuerExpressions | undefined {
  const claimRules = claimValidationRules.flatMap(({ expression = '', message = '' }) =>
    expression === '' ? [] : [{ expression, message }],
  )
  const expressions: IssuerExpressions = {
    username: username.expression ?? '',
    groups: groups?.expression ?? '',
    uid: uid?.expression ?? '',
    extra: extra.map(({ key, valueExpression: expression }) => ({ key, expression })),
    claimRules,
    userRules: userValidationRules.map(({ expression, message = '' }) => ({ expression, message })),
  }
  const isUsed = Object.values(expressions).some((value: string | readonly unknown[]) => value.length > 0)
  return isUsed ? expressions : undefined
}
