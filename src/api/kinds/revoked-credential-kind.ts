// RevokedCredential's row of the scheme. Only the embedded API server has this kind.

import { kubeObject, object, text, time } from '../kube/json-schema.ts'
import { isRecord, type Loose } from '../kube/object-shape.ts'
import { ANONYMOUS_USER } from '../kube/user.ts'
import type { ResourceKind } from '../ports/resource-kind.ts'
import type { RevokedCredentialSpec } from '../revoked-credential/revoked-credential.ts'
import { checkRevocation } from '../upstream-cluster/revocation-checks.ts'
import { FieldErrors } from '../validation/field-errors.ts'

const CREDENTIAL_ID = /^(?:X509SHA256=[0-9a-f]{64}|JTI=[\x21-\x7e]{1,200})$/

export const REVOKED_CREDENTIAL_SPEC_SCHEMA = object(
  'What is refused from now on: exactly one of user, certificateFingerprint, tokenHash and credentialID.',
  {
    user: text('A user name, whichever way the user authenticates. Not an impersonated user.'),
    certificateFingerprint: text(
      'SHA-256 of the DER of the client certificate, or (better) of the part of it that is signed; 64 lower-case hex digits.',
    ),
    tokenHash: text('SHA-256 of the header and claims of the token, as text; 64 lower-case hex digits.'),
    // For a credential that is not at hand; a file is better, since whoever has a certificate may be able to rewrite its signature, and with it
    // this fingerprint.
    credentialID: text('X509SHA256=HEX or JTI=ID, as the extra of a user in audit events has it.'),
    subject: text('Whose it is, for people.'),
    reason: text('Why, for people.'),
    revokedAt: time('Since when, for people: the object is in force whatever the time.'),
  },
)

export const REVOKED_CREDENTIALS: ResourceKind = {
  group: 'portcullis.io',
  version: 'v1alpha1',
  kind: 'RevokedCredential',
  listKind: 'RevokedCredentialList',
  plural: 'revokedcredentials',
  singular: 'revokedcredential',
  shortNames: [],
  categories: [],
  namespaced: false,
  hasStatus: false,
  hasGeneration: true,
  schema: kubeObject(
    'RevokedCredential is a user, certificate or token that this API server and the protection webhook refuse.',
    'portcullis.io/v1alpha1',
    'RevokedCredential',
    { spec: REVOKED_CREDENTIAL_SPEC_SCHEMA },
    ['spec'],
  ),
  columns: [
    { name: 'User', type: 'string', description: 'The user that is refused.', jsonPath: '.spec.user' },
    { name: 'Subject', type: 'string', description: 'Whose the credential is.', jsonPath: '.spec.subject' },
    { name: 'Reason', type: 'string', description: 'Why.', jsonPath: '.spec.reason' },
    { name: 'Age', type: 'date', description: 'Since when.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [],
  check(object) {
    const out = new FieldErrors()
    checkSpec(isRecord(object['spec']) ? object['spec'] : {}, out)
    return out.found
  },
}

function checkSpec(given: Loose<RevokedCredentialSpec>, out: FieldErrors): void {
  const { credentialID, user } = given
  if (credentialID === undefined) checkRevocation(given, 'spec', out)
  else if ([given.user, given.certificateFingerprint, given.tokenHash].some((other) => other !== undefined)) {
    out.forbidden(
      'spec.credentialID',
      'may not be specified with another way to name a credential',
      'give each its own object',
    )
  } else if (typeof credentialID !== 'string' || !CREDENTIAL_ID.test(credentialID)) {
    out.invalid(
      'spec.credentialID',
      'is not a valid credential-id',
      'write X509SHA256= and 64 hex digits, or JTI= and the id of a token',
    )
  }
  if (user === '') out.invalid('spec.user', 'is empty', 'name a user')
  if (user === ANONYMOUS_USER)
    out.invalid('spec.user', 'has no credential', 'anonymous requests may ask for health alone')
}
