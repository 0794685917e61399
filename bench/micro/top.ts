// What counting one request for `portcullis top` costs: nanoseconds of CPU, with names that are cut out of a request's target as the request path
// does it. `node bench/micro/top.ts`

import { createRecord, type RequestRecord } from '../../src/gateway/api/request-record.ts'
import { Traffic } from '../../src/insight/core/top/traffic.ts'

const RESOURCES = ['pods', 'nodes', 'events', 'leases', 'secrets', 'configmaps', 'endpointslices', 'deployments']
const VERBS = ['get', 'list', 'update', 'patch', 'create']
const CLUSTERS = ['prod-eu-1', 'prod-us-1', 'staging']
const BATCH = 64
const BATCHES = 8000
/** As a thread at full load: ten seconds of 140,000 requests. */
const REQUESTS_A_TAKE = 1_400_000

/** Users that send: strings that stay, as those of a connection. */
interface Client {
  readonly connection: number
  readonly user: string
  readonly userAgent: string
  readonly address: string
  readonly cluster: string
}

function clientOf(index: number): Client {
  return {
    connection: index,
    user: flat(`system:serviceaccount:team-${index % 97}:worker-${index}`),
    userAgent: flat(`worker/v1.${index % 40}.0 (linux/amd64) kubernetes/93248f9`),
    address: flat(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`),
    cluster: CLUSTERS[index % CLUSTERS.length] ?? '',
  }
}

/** As it is read from a connection: in one piece. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function recordOf(index: number, client: Client): RequestRecord {
  const record = createRecord()
  Object.assign(record, { user: client.user, userAgent: client.userAgent, cluster: client.cluster })
  record.connection = client.connection
  record.remoteAddress = client.address
  const resource = RESOURCES[index % RESOURCES.length] ?? 'pods'
  const target = Buffer.from(`/api/v1/namespaces/team-namespace-${index % 97}/${resource}`).toString('latin1')
  record.verb = VERBS[index % VERBS.length] ?? 'get'
  record.apiGroup = resource === 'deployments' ? 'apps' : ''
  record.namespace = target.slice(19, target.lastIndexOf('/'))
  record.resource = target.slice(target.lastIndexOf('/') + 1)
  record.isResourceRequest = true
  record.code = 200
  record.durationMs = 1.25
  record.upstreamMs = 1.05
  record.responseBytes = 1024
  return record
}

function measure(title: string, users: number): void {
  const traffic = new Traffic()
  const clients = Array.from({ length: users }, (_, index) => clientOf(index))
  const times: number[] = []
  let counted = 0
  for (let round = 0; round < BATCHES; round++) {
    const batch: RequestRecord[] = []
    for (let i = 0; i < BATCH; i++) {
      const client = clients[Math.floor(Math.random() * users)]
      if (client !== undefined) batch.push(recordOf(round * BATCH + i, client))
    }
    const start = process.hrtime.bigint()
    for (const record of batch) traffic.count(record)
    times.push(Number(process.hrtime.bigint() - start) / BATCH)
    counted += BATCH
  }
  const start = performance.now()
  const taken = traffic.take()
  const took = performance.now() - start
  const rows = taken.dimensions.reduce((sum, { all }) => sum + all.names.length, 0)
  const steady = times.slice(BATCHES / 2).sort((a, b) => a - b)
  const mean = steady.slice(0, Math.floor(steady.length * 0.9)).reduce((a, b) => a + b, 0) / (steady.length * 0.9)
  const quick = steady[Math.floor(steady.length / 10)] ?? 0
  const share = (took * 1e6) / REQUESTS_A_TAKE
  console.log(
    `${title.padEnd(14)} ${quick.toFixed(0)} ns a request (mean of nine tenths ${mean.toFixed(0)} ns); ` +
      `taken in ${took.toFixed(1)} ms (${share.toFixed(1)} ns a request at full load), ${rows} rows of ${counted} requests`,
  )
}

for (const users of [10, 100, 1000, 5000, 20_000, 100_000]) measure(`${users} users`, users)
