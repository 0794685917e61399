// The schemas of spec.clientConfig and spec.secureServing: keys, certificates and tokens, inline or by reference.

import {
  atMost,
  base64,
  checked,
  defaultsTo,
  flag,
  integer,
  list,
  object,
  text,
} from '../../../kit/api/json/json-schema.ts'
import {
  CLIENT_CONFIG_RULES,
  SECRET_REFERENCE_RULES,
  SECURE_SERVING_RULES,
  SERVER_NAME_RULES,
  SIZES,
} from './cel/cel-rules.ts'

function secretReference(what: string) {
  const schema = object(`A reference to ${what}, instead of an inline value. Exactly one of file and name.`, {
    file: text('Path of a file, relative to the configuration directory. Only for objects that come from files.'),
    name: text('Name of a Secret.', { maxLength: 253 }),
    namespace: defaultsTo('default', text('Namespace of the Secret. Default `{default}`.', { maxLength: 63 })),
    key: text("Key in the Secret's data. Required with name.", { maxLength: 253 }),
  })
  return checked(schema, SECRET_REFERENCE_RULES)
}

const clientFields = object('How the gateway connects to the servers, and its credentials there.', {
  insecure: defaultsTo(false, flag("Do not verify the servers' certificates.")),
  bearerToken: base64("Token of the gateway's own user, base64."),
  keyData: base64("Private key of the gateway's client certificate: PEM, base64."),
  certData: base64("The gateway's client certificate: PEM, base64."),
  caData: base64("CA certificates that verify the servers' certificates: PEM, base64."),
  bearerTokenRef: secretReference('the token'),
  keyRef: secretReference('the private key'),
  certRef: secretReference('the client certificate'),
  caRef: secretReference('the CA bundle'),
  qps: defaultsTo(
    0,
    integer(
      "Limit of the gateway's own calls per second, separately for each kind: token reviews, access reviews, reads of pods to be deleted. Calls are queued fairly by the user or address that causes them. Default {default}: none.",
      0,
    ),
  ),
  burst: defaultsTo(0, integer('Largest burst of those calls; at least qps when qps is set.', 0)),
  qpsDivisor: defaultsTo(0, integer('Divides qps, for rates below one call per second. 0 and 1 have no effect.', 0)),
  serverName: text("Name to verify in the servers' certificates. Default: the host of the endpoint."),
})

export const CLIENT_CONFIG_SCHEMA = checked(clientFields, CLIENT_CONFIG_RULES)

const servingFields = object('How clients are served.', {
  keyData: base64('Private key of the serving certificate: PEM, base64.'),
  certData: base64("Serving certificate for this cluster's host names: PEM, base64. Default: the gateway's own."),
  clientCAData: base64('CA certificates that verify client certificates: PEM, base64.'),
  keyRef: secretReference('the private key'),
  certRef: secretReference('the serving certificate'),
  clientCARef: secretReference('the client CA bundle'),
  serverNames: atMost(
    SIZES.serverNames,
    list(
      'Host names of this cluster besides metadata.name. `*.example.com` covers one label.',
      checked(text('DNS name.', { maxLength: SIZES.serverName }), SERVER_NAME_RULES),
    ),
  ),
})

export const SECURE_SERVING_SCHEMA = checked(servingFields, SECURE_SERVING_RULES)
