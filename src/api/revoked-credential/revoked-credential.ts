// RevokedCredential: a user or credential that the embedded API server and the protection webhook refuse.

import type { REVOKED_CREDENTIAL_SPEC_SCHEMA } from '../kinds/revoked-credential-kind.ts'
import type { ValueOf } from '../kube/json-schema.ts'

/** Exactly one of `user`, `certificateFingerprint`, `tokenHash` and `credentialID`. */
export type RevokedCredentialSpec = ValueOf<typeof REVOKED_CREDENTIAL_SPEC_SCHEMA>
