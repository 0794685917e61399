// The schema of spec.flowControl.flowControlSchemas.

import { atMost, checked, flag, integer, type JsonSchema, list, object, oneOf, text } from '../kube/json-schema.ts'
import { FLOW_CONTROL_SCHEMA_RULES, SIZES, TOKEN_BUCKET_RULES } from './cel.ts'
import type { FlowControlSchema, TokenBucket } from './upstream-cluster.ts'

function tokenBucket(description: string): JsonSchema {
  const schema = object<TokenBucket>(
    description,
    { qps: integer('Requests per second.', 1), burst: integer('Largest burst, at least qps.', 1) },
    ['qps', 'burst'],
  )
  return checked(schema, TOKEN_BUCKET_RULES)
}

function inflight(description: string): JsonSchema {
  // `{}` is what KubeGateway's own encoder makes of a limit of zero.
  const max: JsonSchema = { ...integer('Requests running at once; 0 refuses all. Default 0.', 0), default: 0 }
  return object<{ max: number }>(description, { max })
}

const limit: JsonSchema = object<FlowControlSchema>(
  'A limit that dispatch policies name. Exactly one of exempt, maxRequestsInflight and tokenBucket.',
  {
    name: text('Name, unique in the cluster.', { minLength: 1, maxLength: SIZES.flowControlSchemaName }),
    strategy: oneOf('Where the limit is kept: in this gateway (empty, local), or shared by replicas (global*).', [
      '',
      'local',
      'globalAllocate',
      'globalCount',
    ]),
    exempt: object<object>('No limit.', {}),
    maxRequestsInflight: inflight('Limits how many requests run at once. A watch counts until its response begins.'),
    tokenBucket: tokenBucket('Limits how many requests start per second.'),
    globalMaxRequestsInflight: inflight('The limit of all replicas together; at least the local one.'),
    globalTokenBucket: tokenBucket('The limit of all replicas together; at least the local one.'),
    perUser: flag('Every user has a limit of its own. Default false.'),
    maxWatches: integer('Watches open at once; 0 = no cap. Stands beside the other limits. Default 0.', 0),
    shadow: flag('What goes over the limit is counted and warned about, but let pass. Default false.'),
  },
  ['name'],
)

export const FLOW_CONTROL_SCHEMAS_SCHEMA: JsonSchema = {
  ...atMost(SIZES.flowControlSchemas, list('Limits, by name.', checked(limit, FLOW_CONTROL_SCHEMA_RULES))),
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
}
