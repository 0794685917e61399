// Errors in spec.followEndpointSlice: anything that would send the gateway's credential to an unverified address.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { checkUpstreamCluster } from './checks.ts'

const NAMED = 'https://api.prod.test:6443'
const ADDRESS = 'https://10.0.0.1:6443'
const SECRET = { namespace: 'portcullis-system', name: 'prod', key: 'k' }
const CLIENT = { caRef: SECRET, bearerTokenRef: SECRET }
const POLICY = { rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }

function errors(
  endpoints: readonly string[],
  clientConfig: object,
  policy: object = {},
  followEndpointSlice = true,
): string[] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: endpoints.map((endpoint) => ({ endpoint })),
      followEndpointSlice,
      clientConfig,
      dispatchPolicies: [{ ...POLICY, ...policy }],
    },
  }
  return checkUpstreamCluster(object, nodePemChecks)
    .filter(({ severity }) => severity === 'error')
    .map(({ path, message }) => `${path} ${message}`)
}

const UNVERIFIED =
  'spec.followEndpointSlice would send credentials and requests to whatever address the cluster names, unverified'
const NAMELESS =
  'spec.followEndpointSlice needs a DNS name to verify: by an address in a certificate, an API server cannot be told from a kubelet'

const TABLE: readonly (readonly [title: string, found: readonly string[], wanted: readonly string[]])[] = [
  ['a server with a name', errors([NAMED], CLIENT), []],
  ['one of them has a name', errors([ADDRESS, NAMED], CLIENT), []],
  ['addresses and serverName', errors([ADDRESS], { ...CLIENT, serverName: 'kubernetes' }), []],
  ['addresses only', errors([ADDRESS, 'https://[fd00::1]:6443'], CLIENT), [NAMELESS]],
  ['addresses, not followed', errors([ADDRESS], CLIENT, {}, false), []],
  ['http', errors(['http://api.prod.test:8080'], {}), [UNVERIFIED]],
  ['insecure', errors([NAMED], { bearerTokenRef: SECRET, insecure: true }), [UNVERIFIED]],
  ['insecure with a CA', errors([NAMED], { ...CLIENT, insecure: true }), [UNVERIFIED]],
  [
    'no CA: those of the system are not believed',
    errors([NAMED], { bearerTokenRef: SECRET }),
    ['spec.clientConfig.caData is required for https servers'],
  ],
  [
    'a policy for some servers',
    errors([NAMED], CLIENT, { upstreamSubset: [NAMED] }),
    [
      'spec.dispatchPolicies[0].upstreamSubset has no meaning with followEndpointSlice: the servers of spec.servers are only its backup',
    ],
  ],
]

for (const [title, found, wanted] of TABLE) {
  test(title, () => assert.deepEqual(found, wanted))
}
