// Algorithms that ID tokens may be signed with (RFC 7518 section 3). Asymmetric only: with `none` and HS*, knowing the public key would be enough to
// sign.

/** Like kube-apiserver's `--oidc-signing-algs`. */
export const SIGNING_ALGS = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'] as const
export type SigningAlg = (typeof SIGNING_ALGS)[number]
