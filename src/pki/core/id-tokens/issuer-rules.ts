// What makes a token of one issuer valid, and how its claims name the user: a JWTAuthenticator of kube-apiserver's AuthenticationConfiguration
// (apiserver.config.k8s.io/v1) with its defaults applied. Plain data that can be posted to a thread.

/** A claim with what stands in front of its value. */
export interface ClaimMapping {
  readonly claim: string
  /** '' = nothing. */
  readonly prefix: string
}

export interface IssuerRules {
  /** `https://...`, exactly as in the `iss` claim. */
  readonly issuer: string
  /** One of them must be among the audiences of the token. */
  readonly audiences: readonly string[]
  readonly username: ClaimMapping
  /** undefined = tokens carry no groups. */
  readonly groups: ClaimMapping | undefined
  /** '' = users have no uid. */
  readonly uidClaim: string
  /** Claims that must be present with this value. */
  readonly requiredClaims: Readonly<Record<string, string>>
  /** Default: none. */
  readonly expressions?: IssuerExpressions
}

/** CEL expressions; '' = the claim counts instead. They are known to be valid. */
export interface IssuerExpressions {
  readonly username: string
  readonly groups: string
  readonly uid: string
  readonly extra: readonly { readonly key: string; readonly expression: string }[]
  /** Must be true of the claims. */
  readonly claimRules: readonly ValidationRule[]
  /** Must be true of the user. */
  readonly userRules: readonly ValidationRule[]
}

export interface ValidationRule {
  readonly expression: string
  /** For the log; '' = the expression. */
  readonly message: string
}
