// The demo's kinds as Kubernetes protocol buffers, which kubectl sends for `create`, `run` and evictions: field numbers of
// k8s.io/api generated.proto. Fields that the demo doesn't use are skipped.

import {
  deleteOptions,
  MESSAGES,
  METADATA,
  type Messages,
  message,
  objectMeta,
} from '../../apiserver/protobuf/kinds.ts'
import { ProtobufReader } from '../../kit/core/text/protobuf-reader.ts'

const resources = message([1, 'limits', quantity, 'map'], [2, 'requests', quantity, 'map'])

const container = message(
  [1, 'name', 'string'],
  [2, 'image', 'string'],
  [3, 'command', 'string', 'list'],
  [4, 'args', 'string', 'list'],
  [6, 'ports', message([1, 'name', 'string'], [3, 'containerPort', 'integer'], [4, 'protocol', 'string']), 'list'],
  [7, 'env', message([1, 'name', 'string'], [2, 'value', 'string']), 'list'],
  [8, 'resources', resources],
)

const podSpec = message(
  [2, 'containers', container, 'list'],
  [3, 'restartPolicy', 'string'],
  [8, 'serviceAccountName', 'string'],
)
const template = message(METADATA, [2, 'spec', podSpec])
const selector = message([1, 'matchLabels', 'string', 'map'])

const deploymentSpec = message(
  [1, 'replicas', 'integer', 'optional'],
  [2, 'selector', selector],
  [3, 'template', template],
)

const servicePort = message(
  [1, 'name', 'string'],
  [2, 'protocol', 'string'],
  [3, 'port', 'integer'],
  [4, 'targetPort', intOrString],
  [5, 'nodePort', 'integer'],
)

const serviceSpec = message(
  [1, 'ports', servicePort, 'list'],
  [2, 'selector', 'string', 'map'],
  [3, 'clusterIP', 'string'],
  [4, 'type', 'string'],
  [10, 'externalName', 'string'],
)

export const DEMO_MESSAGES: Messages = new Map([
  ...MESSAGES,
  ['v1/Pod', template],
  ['v1/Service', message(METADATA, [2, 'spec', serviceSpec])],
  ['v1/ServiceAccount', message(METADATA)],
  ['v1/ConfigMap', message(METADATA, [2, 'data', 'string', 'map'], [3, 'binaryData', 'bytes', 'map'])],
  ['apps/v1/Deployment', message(METADATA, [2, 'spec', deploymentSpec])],
  ['policy/v1/Eviction', message([1, 'metadata', objectMeta], [2, 'deleteOptions', deleteOptions])],
])

/** resource.Quantity { string = 1 }. */
function quantity(bytes: Buffer): string {
  const reader = new ProtobufReader(bytes)
  let text = '0'
  while (reader.next()) if (reader.number === 1) text = reader.text()
  return text
}

/** intstr.IntOrString { type = 1, intVal = 2, strVal = 3 }. */
function intOrString(bytes: Buffer): string | number {
  const reader = new ProtobufReader(bytes)
  let isText = false
  let number = 0
  let text = ''
  while (reader.next()) {
    if (reader.number === 1) isText = reader.integer() !== 0
    if (reader.number === 2) number = reader.integer()
    if (reader.number === 3) text = reader.text()
  }
  return isText ? text : number
}
