// The user who sends a request: terms of authentication (apiserver/pkg/authentication/user/user.go).

/** An authenticated user, like kube-apiserver's user.Info. */
export interface UserInfo {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  /** Key to values; keys are lower-case. */
  readonly extra: Readonly<Record<string, readonly string[]>>
}

export const ANONYMOUS_USER = 'system:anonymous'
export const GROUP_AUTHENTICATED = 'system:authenticated'
export const GROUP_UNAUTHENTICATED = 'system:unauthenticated'
export const GROUP_SERVICE_ACCOUNTS = 'system:serviceaccounts'
export const SERVICE_ACCOUNT_PREFIX = 'system:serviceaccount:'

/** The identity of a request without credentials. */
export const ANONYMOUS: UserInfo = { name: ANONYMOUS_USER, uid: '', groups: [GROUP_UNAUTHENTICATED], extra: {} }
