// What a cluster's users ask for, as an access log shows it: for each class and each of its users the most requests in a second, running
// at once, and watches open at once. The requests come in the order of their beginnings, and a slot is held as the gateway would hold it.

import { assumeUser } from '../identity/assume-user.ts'
import { TimeQueue } from '../queues/time-queue.ts'
import { Counts } from '../replay/counts.ts'
import type { Ordered } from '../replay/start-order.ts'
import { isWatch } from '../request/long-running.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { Peak, SecondCounter } from './peak.ts'
import { classOf } from './priority-classes.ts'

/** What one user asks for in one class. */
export interface UserDemand {
  readonly name: string
  requests: number
  readonly perSecond: Peak
  readonly inFlight: Peak
  readonly watches: Peak
}

export interface ClassDemand {
  requests: number
  /** Requests that were refused by a limit then. */
  limited: number
  readonly users: Map<string, UserDemand & UserCounters>
  readonly perSecond: Peak
  readonly inFlight: Peak
  readonly resources: Counts
}

interface UserCounters {
  readonly seconds: SecondCounter
  running: number
  open: number
}

export interface ClusterDemand {
  readonly name: string
  requests: number
  late: number
  fromMs: number
  toMs: number
  /** By index of PRIORITY_CLASSES. */
  readonly classes: ReadonlyMap<number, ClassDemand>
}

/** Users of one class that are told apart; the rest counts as one, which can only make the peaks higher. */
const MAX_USERS = 20_000
const OTHERS = '(others)'
/** As in a replay: what overlaps by less than the log can tell does not overlap. */
const RESOLUTION_MS = 0.1
const LIMITED: ReadonlySet<string> = new Set(['rate-limited', 'too-many-in-flight', 'too-many-watches'])

interface Ending {
  readonly user: UserDemand & UserCounters
  readonly demand: MutableClass
  readonly what: 'slot' | 'watch'
}

interface MutableClass extends ClassDemand {
  readonly seconds: SecondCounter
  running: number
}

interface MutableCluster extends ClusterDemand {
  readonly classes: Map<number, MutableClass>
  readonly endings: TimeQueue<Ending>
}

export class DemandMeter {
  readonly #clusters = new Map<string, MutableCluster>()

  get clusters(): readonly ClusterDemand[] {
    return [...this.#clusters.values()]
  }

  /** @param info of the request's target; a request that has no user or no cluster is not counted */
  add({ entry, late }: Ordered, info: RequestInfo): void {
    const { startMs, latencyMs, ttfbMs } = entry
    const cluster = this.#cluster(entry.cluster, startMs)
    cluster.requests++
    cluster.fromMs = Math.min(cluster.fromMs, startMs)
    cluster.toMs = Math.max(cluster.toMs, startMs)
    const user = assumeUser(entry.user, entry.input.groups)
    const demand = classFor(cluster, classOf(info, user))
    demand.requests++
    if (LIMITED.has(entry.reason)) demand.limited++
    demand.resources.add(`${info.verb} ${entry.resource === '' ? '(path)' : entry.resource}`.slice(0, 256))
    if (late) {
      cluster.late++
      return
    }
    endUntil(cluster, startMs + RESOLUTION_MS)
    const one = userFor(demand, user.name)
    one.requests++
    one.perSecond.see(one.seconds.count(startMs), startMs)
    demand.perSecond.see(demand.seconds.count(startMs), startMs)
    one.inFlight.see(++one.running, startMs)
    demand.inFlight.see(++demand.running, startMs)
    const endMs = startMs + Math.max(0, latencyMs)
    const watch = isWatch(info)
    const headMs = watch && ttfbMs >= 0 ? Math.min(endMs, startMs + ttfbMs) : endMs
    cluster.endings.add(headMs, { user: one, demand, what: 'slot' })
    if (!watch) return
    one.watches.see(++one.open, startMs)
    cluster.endings.add(endMs, { user: one, demand, what: 'watch' })
  }

  #cluster(name: string, startMs: number): MutableCluster {
    let cluster = this.#clusters.get(name)
    if (cluster === undefined) {
      const classes = new Map<number, MutableClass>()
      const endings = new TimeQueue<Ending>()
      cluster = { name, requests: 0, late: 0, fromMs: startMs, toMs: startMs, classes, endings }
      this.#clusters.set(name, cluster)
    }
    return cluster
  }
}

function endUntil({ endings }: MutableCluster, ms: number): void {
  while (endings.firstMs < ms) {
    const ending = endings.takeFirst()
    if (ending === undefined) return
    if (ending.what === 'watch') ending.user.open--
    else {
      ending.user.running--
      ending.demand.running--
    }
  }
}

function classFor({ classes }: MutableCluster, at: number): MutableClass {
  let demand = classes.get(at)
  if (demand === undefined) {
    demand = {
      requests: 0,
      limited: 0,
      users: new Map(),
      perSecond: new Peak(),
      inFlight: new Peak(),
      resources: new Counts(),
      seconds: new SecondCounter(),
      running: 0,
    }
    classes.set(at, demand)
  }
  return demand
}

function userFor({ users }: MutableClass, name: string): UserDemand & UserCounters {
  const as = users.has(name) || users.size < MAX_USERS ? name : OTHERS
  let user = users.get(as)
  if (user === undefined) {
    user = {
      name: as,
      requests: 0,
      perSecond: new Peak(),
      inFlight: new Peak(),
      watches: new Peak(),
      seconds: new SecondCounter(),
      running: 0,
      open: 0,
    }
    users.set(as, user)
  }
  return user
}
