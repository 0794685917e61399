// RevokedCredential's row of the scheme. Only the embedded API server has this kind.

import { kubeObject } from '../../kit/api/json/json-schema.ts'
import { isRecord, type Loose } from '../../kit/api/json/object-shape.ts'
import { FieldErrors } from '../../kit/api/validation/field-errors.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { ANONYMOUS_USER } from '../../kube/api/user.ts'
import { REVOKED_CREDENTIAL_SPEC_SCHEMA, type RevokedCredentialSpec } from './revoked-credential.ts'
import { checkRevocation } from './upstream-cluster/revocation-checks.ts'

const CREDENTIAL_ID = /^(?:X509SHA256=[0-9a-f]{64}|JTI=[\x21-\x7e]{1,200})$/

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
