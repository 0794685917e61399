// RevokedCredential: a user or credential that the embedded API server and the protection webhook reject.

import { object, text, time, type ValueOf } from '../../kit/api/json/json-schema.ts'

export const REVOKED_CREDENTIAL_SPEC_SCHEMA = object(
  'The user or credential that is refused: exactly one of user, certificateFingerprint, tokenHash and credentialID.',
  {
    user: text('A user name, however the user authenticates; not an impersonated user.'),
    certificateFingerprint: text(
      'SHA-256 of the DER of the client certificate, or (better) of the part of it that is signed; 64 lower-case hex digits.',
    ),
    tokenHash: text('SHA-256 of the header and claims of the token, as text; 64 lower-case hex digits.'),
    // For a credential that is not at hand; a file is better, since the owner of a certificate may be able to rewrite its signature, and with it this
    // fingerprint.
    credentialID: text('X509SHA256=HEX or JTI=ID, as in the extra fields of a user in audit events.'),
    subject: text('Whose it is, for people.'),
    reason: text('Why, for people.'),
    revokedAt: time('Time of the revocation, for people; the object is in force whatever the time.'),
  },
)

/** Exactly one of `user`, `certificateFingerprint`, `tokenHash` and `credentialID`. */
export type RevokedCredentialSpec = ValueOf<typeof REVOKED_CREDENTIAL_SPEC_SCHEMA>
