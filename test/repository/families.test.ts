// One mechanism for each job. A file under src/ that looks as if it belonged to a family (by its name, the name of a class in it, or its shape) is
// the family's owner, or is allowed by a decision that says why the owner cannot do it, or stood here before the rule did. Anything else
// is a second mechanism, and fails. A change that merges or moves one edits the table: nothing else is needed.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'

interface Family {
  /** Words of the names of files (`fair-queue.ts`) and classes (`FairQueue`). */
  readonly words: readonly string[]
  /** What its members do, however they are called. */
  readonly shape?: RegExp
  /** The mechanism itself: what is new uses it. Paths below src/, without `.ts`. */
  readonly owners: readonly string[]
  /** Something that the owner cannot do: number of the decision that says so. */
  readonly decided: Readonly<Record<string, number>>
  /** It has the word, but is something else; in one line, what. */
  readonly otherwise?: Readonly<Record<string, string>>
  /** Not merged yet. This list only becomes shorter. */
  readonly unmerged?: readonly string[]
}

const FAMILIES: Readonly<Record<string, Family>> = {
  'a queue': {
    words: ['queue', 'queued', 'turns', 'scheduler', 'fifo', 'heap', 'deque'],
    owners: ['kit/core/queues/round-robin-queue', 'kit/core/queues/time-queue', 'kube/controllers/kernel/work-queue'],
    decided: {
      'gateway/core/thread-time/fair-queue': 43,
      'gateway/io/scheduling/thread-scheduler': 43,
      'gateway/core/thread-time/fifo': 43,
    },
    otherwise: {
      'http2/chunk-queue': 'bytes of one stream, in their order',
      'kit/io/logs/line-writer': 'lines of one file, in their order',
      'demo/cluster/scheduler': 'which node a pod of the demo runs on',
      'gateway/core/limits/call-turns': 'a rate and a number of calls in flight, around a RoundRobinQueue',
      'gateway/io/upstream/stream-queue': 'when streams that wait in a RoundRobinQueue are refused',
    },
  },
  'a bucket or budget': {
    words: ['bucket', 'buckets', 'budget', 'budgets', 'pace', 'throttle', 'limiter', 'rate'],
    owners: ['gateway/core/limits/token-bucket', 'kit/api/limits/budget'],
    decided: {},
    otherwise: {
      'gateway/core/limits/ramped-bucket': 'a rate that grows with the time since a degrade mode began',
      'gateway/core/endpoints/retry-budget': 'a part of the requests, whatever their rate',
      'gateway/state/user-budgets': 'an kit/api/limits/budget for each user',
      'insight/core/dashboard/rate-ring': 'a series of numbers for the dashboard',
      'scaling/core/rank/age-bucket': 'how the ReplicaSet controller groups ages',
      'http2/budget': 'budgets of one connection, each an api/limits/budget',
      'sessions/io/s3-bucket': 'a bucket of an S3 store',
    },
  },
  'a backoff or retry': {
    words: ['backoff', 'retry', 'retries', 'jitter'],
    shape: /(?:Ms|_MS|_S) \* (?:2|FACTOR) \*\* |\bdelayMs \* 2\b/,
    owners: ['kube/controllers/kernel/work-queue', 'kit/io/batches/batch-sender', 'kube/io/watch'],
    decided: {
      'protection/core/batch/retry-batch': 59,
      'gateway/core/endpoints/endpoint-health': 6,
      'gateway/core/endpoints/resolution': 30,
    },
    otherwise: {
      'gateway/core/endpoints/retry-budget': 'whether a request is sent again, not when',
      'gateway/core/limits/spread-retry-after': 'what clients are told',
      'scale-up-guard/core/cluster-state': "the cluster-autoscaler's own, in a model of it",
      'audit/io/webhook/audit-webhook': 'the delays of its BatchSender',
      'traces/io/otlp-exporter': 'the delays of its BatchSender',
    },
    unmerged: [
      'gateway/controllers/rights/upstream-rights',
      'gateway/core/endpoints/restart-delay',
      'pki/io/shared-ca',
      'gateway/io/redis/client',
      'gateway/io/secrets/named-secrets',
    ],
  },
  'a batch that is sent': {
    words: ['batch', 'batches', 'batcher'],
    owners: ['kit/io/batches/batch-sender'],
    decided: {
      'protection/core/batch/retry-batch': 59,
      'protection/core/ledger/history': 59,
    },
  },
  'a loop that follows objects': {
    words: ['informer', 'follower', 'watcher', 'watchers'],
    shape: /\bclient\.follow\(/,
    owners: ['kube/controllers/kernel/informer', 'kube/io/watch', 'kube/io/shared-follow'],
    decided: {
      'protection/controllers/ledger/ledger': 59,
      'protection/controllers/aggregator/member': 59,
      'gateway/controllers/autoscaler-status/autoscaler-statuses': 59,
      'gateway/io/last-good/kept-follow': 27,
      'cache/controllers/followed-collection': 76,
      'cli/client/followed-clusters': 93,
    },
    otherwise: { 'apiserver/io/store/watchers': 'the serving side: clients of the embedded API server' },
    unmerged: ['gateway/io/secrets/named-secrets', 'gateway/io/sources/objects/objects-source'],
  },
  'a cache': {
    words: ['cache', 'caches', 'lru', 'memo'],
    shape: /\bnew LRUCache\b/,
    // The mechanism is the package lru-cache; who uses it says how much it may hold.
    owners: [],
    decided: {
      'gateway/io/reviews/token-review': 5,
      'gateway/io/reviews/access-review': 5,
      'apiserver/io/store/objects': 5,
      'pki/io/pem-checks': 5,
      'cache/app/read-caches': 76,
      'cache/controllers/read-caches': 76,
      'cache/request/read-cache': 76,
      'federation/state/known-rights': 82,
    },
    otherwise: {
      'protection/controllers/generator/cache': 'all that its informers know, and nothing is dropped',
      'gateway/api/upstream-cluster/read-cache/read-cache': 'the field of UpstreamCluster: schema, types, checks',
      'gateway/api/upstream-cluster/read-cache/read-cache-in-force': 'what is said of it in statuses: types',
      'http2/hpack/literals': 'LiteralMemo: found by octets, before there is a string',
    },
  },
  'a lease': {
    words: ['lease', 'leases', 'election', 'leadership'],
    shape: /\bstartLeaderElection\(/,
    owners: ['kube/io/leader-lease', 'kube/controllers/kernel/leadership'],
    decided: { 'gateway/core/limits/global-slots': 10 },
    otherwise: {
      'kube/api/kinds/lease-kind': 'the kind of object',
      'gateway/controllers/status/replicas': 'each replica says that it is there; none is elected',
    },
  },
  'a penalty': {
    words: ['penalty', 'penalties', 'offender', 'offenders', 'offences', 'suspect', 'suspects', 'blocked', 'failures'],
    owners: ['kit/core/penalties/penalties'],
    decided: {
      'process/failures/address-failures': 44,
      'gateway/state/blocked-sources': 44,
      'program/threads/thread/failures': 44,
    },
    otherwise: {
      'gateway/core/upstream/offenders': 'which penalty it is, around Penalties',
      'gateway/io/upstream/offences': 'which end of a connection is an offence',
      'gateway/request/blocked-address': 'what is still answered to an address that state/blocked-sources has blocked',
      'http2/client': 'Suspects: which streams a GOAWAY can be about',
    },
  },
  'a call with an answer': {
    words: ['calls', 'questions', 'asking', 'rpc'],
    // Posts a message with an id.
    shape: /\b(?:post|postMessage|send)\(\{ type: [^}]*\bid\b/,
    owners: ['program/threads/calls'],
    decided: {
      'program/threads/pool/subscriptions': 66,
      'program/threads/thread/streams': 66,
      'program/connections/thread-line': 66,
    },
    otherwise: {
      'program/threads/thread-calls': 'the types of its calls',
      'kit/core/topics/questions': 'what subjects ask, by one of its calls',
      'gateway/controllers/limits/global-limit-flows': 'scripts of Redis, whose client has their answers',
    },
  },
  'places that are taken and given up': {
    words: ['places', 'room', 'slots', 'seats', 'held'],
    owners: ['kit/core/places/places'],
    decided: {
      'gateway/state/connection-places': 26,
      'gateway/core/limits/global-slots': 10,
      'protection/core/batch/retry-batch': 59,
      'sessions/core/recording/directory-room': 94,
    },
    otherwise: {
      'kit/core/shares/shared-resource': 'Places, filled by Shares',
      'gateway/core/admission/held': 'what flow control has taken for one request',
      'kube/core/answers/held-bytes': 'a sum',
      'kube/core/answers/call-errors': 'errors',
      'gateway/core/list-cost/seats': 'what a list costs',
      'gateway/request/held-answer': 'one answer',
      'program/connections/held-connections': 'connections on their way to a thread',
      'sessions/io/recordings': 'what one recording takes of its DirectoryRoom',
    },
  },
}

const ROOT = resolve(import.meta.dirname, '../..')

interface SourceFile {
  /** Below src/, without the extension. */
  readonly path: string
  /** Words of the names of the file and of its classes. */
  readonly words: ReadonlySet<string>
  readonly code: string
}

const FILES: readonly SourceFile[] = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => sourceFile(name.slice(0, -'.ts'.length), readFileSync(join(ROOT, 'src', name), 'utf8')))

function sourceFile(path: string, text: string): SourceFile {
  const code = text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
  const classes = [...code.matchAll(/\bclass (\w+)/g)].flatMap(([, name = '']) => {
    return name
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .split(' ')
  })
  return { path, words: new Set([...(path.split('/').at(-1) ?? '').split('-'), ...classes]), code }
}

function isMember({ words, code }: SourceFile, family: Family): boolean {
  return family.words.some((word) => words.has(word)) || family.shape?.test(code) === true
}

function listed({ owners, decided, otherwise = {}, unmerged = [] }: Family): string[] {
  return [...owners, ...Object.keys(decided), ...Object.keys(otherwise), ...unmerged]
}

for (const [name, family] of Object.entries(FAMILIES)) {
  test(`${name} is the one in the house, or has a decision that says why not`, () => {
    const known = new Set(listed(family))
    const second = FILES.filter((file) => isMember(file, family) && !known.has(file.path)).map(({ path }) => path)
    const use = family.owners.length === 0 ? 'see decided' : family.owners.join(', ')
    assert.deepEqual(second, [], `a second mechanism: use ${use}, or write a decision that says why it cannot do it`)
  })

  test(`${name}: the list is of files that are there, each once, with decisions that are there`, () => {
    const all = listed(family)
    assert.equal(new Set(all).size, all.length, 'a file is listed twice')
    const paths = new Set(FILES.map(({ path }) => path))
    assert.deepEqual(
      all.filter((path) => !paths.has(path)),
      [],
      'gone or moved: edit FAMILIES',
    )
    const isOwner = new Set(family.owners)
    const others = FILES.filter(({ path }) => all.includes(path) && !isOwner.has(path))
    const idle = others.filter((file) => !isMember(file, family)).map(({ path }) => path)
    assert.deepEqual(idle, [], 'does not look like a member any more: take it out of FAMILIES')
    const decisions = readdirSync(join(ROOT, 'docs/decisions')).map((file) => Number(file.slice(0, 4)))
    for (const [path, number] of Object.entries(family.decided))
      assert.ok(decisions.includes(number), `${path}: ${number}`)
  })
}

test('it finds a second mechanism by its name, by its class, and by what it does', () => {
  const [queue, backoff] = [FAMILIES['a queue'], FAMILIES['a backoff or retry']]
  assert.ok(queue !== undefined && backoff !== undefined)
  assert.ok(isMember(sourceFile('io/x/send-queue', ''), queue))
  assert.ok(isMember(sourceFile('io/x/sending', 'export class FairTurns<T> {'), queue))
  assert.ok(!isMember(sourceFile('io/x/sending', '// a queue\nexport class Sending {'), queue))
  assert.ok(isMember(sourceFile('io/x/sending', 'const waitMs = FIRST_MS * 2 ** attempt'), backoff))
})
