// The schema of spec.flowControl.flowControlSchemas.

import {
  atMost,
  byKey,
  checked,
  defaultsTo,
  flag,
  integer,
  list,
  object,
  oneOf,
  storedDefault,
  text,
} from '../../../kit/api/json/json-schema.ts'
import { FLOW_CONTROL_SCHEMA_RULES, SIZES, TOKEN_BUCKET_RULES } from './cel/cel-rules.ts'

function tokenBucket(description: string) {
  const schema = object(
    description,
    { qps: integer('Requests per second.', 1), burst: integer('Largest burst, at least qps.', 1) },
    ['qps', 'burst'],
  )
  return checked(schema, TOKEN_BUCKET_RULES)
}

function inflight(description: string) {
  // KubeGateway's own encoder writes a limit of zero as `{}`.
  const max = storedDefault(0, integer('Requests running at once; 0 refuses all.', 0))
  return object(description, { max }, [], ['max'])
}

const limit = object(
  'A limit to which dispatch policies refer. Exactly one of exempt, maxRequestsInflight and tokenBucket.',
  {
    name: text('Name, unique in the cluster.', { minLength: 1, maxLength: SIZES.flowControlSchemaName }),
    strategy: oneOf('Where the limit is kept: in this gateway (empty, local), or shared by replicas (global*).', [
      '',
      'local',
      'globalAllocate',
      'globalCount',
    ]),
    exempt: object('No limit.', {}),
    maxRequestsInflight: inflight('Limits how many requests run at once. A watch counts until its response begins.'),
    tokenBucket: tokenBucket('Limits how many requests start per second.'),
    globalMaxRequestsInflight: inflight('The limit of all replicas together; at least the local one.'),
    globalTokenBucket: tokenBucket('The limit of all replicas together; at least the local one.'),
    perUser: defaultsTo(false, flag('Each user has a separate limit.')),
    cost: defaultsTo(
      false,
      flag(
        'A list counts once for each 100 kB of its estimated answer, up to 100 times or the limit; so does a watch that ' +
          'begins with a list.',
      ),
    ),
    maxWatches: defaultsTo(0, integer('Watches open at once; 0 = no cap. Applies in addition to the other limits.', 0)),
    shadow: defaultsTo(false, flag('Requests over the limit are counted and warned about, but admitted.')),
  },
  ['name'],
)

export const FLOW_CONTROL_SCHEMAS_SCHEMA = byKey(
  'name',
  atMost(SIZES.flowControlSchemas, list('Limits, by name.', checked(limit, FLOW_CONTROL_SCHEMA_RULES))),
)
