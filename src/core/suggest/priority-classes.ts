// The classes that requests are limited by: those of kube-apiserver's suggested priority levels (apiserver/pkg/apis/flowcontrol/bootstrap),
// as dispatch policies. A request is counted in the class whose policy it would match, so that the numbers are those of the policy.

import type { UserInfo } from '../../api/kube/user.ts'
import type { DispatchRule } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileRule } from '../cluster/compile-rules.ts'
import type { CompiledPolicy } from '../cluster/compiled-cluster.ts'
import { matchPolicy } from '../policy/match-policy.ts'
import type { RequestInfo } from '../request/request-info.ts'

export interface PriorityClass {
  /** As the priority level, with `-lists` for what reads whole collections. */
  readonly name: string
  /** What it is, for people. */
  readonly about: string
  readonly rule: DispatchRule
  /** exempt: no limit is right for it. rate: requests a second. lists: running at once, because one costs as much as its answer is long. */
  readonly limit: 'exempt' | 'rate' | 'lists'
}

const EVERYTHING = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*'] }
const LISTS = { verbs: ['list'], apiGroups: ['*'], resources: ['*'] }
const CONTROL_PLANE = ['system:kube-controller-manager', 'system:kube-scheduler', 'system:apiserver']
const KUBE_SYSTEM = 'system:serviceaccounts:kube-system'

/** In the order of their policies. The last one matches whatever the others do not. */
export const PRIORITY_CLASSES: readonly PriorityClass[] = [
  {
    name: 'exempt',
    about: 'system:masters: who repairs a cluster is not limited',
    rule: { ...EVERYTHING, userGroups: ['system:masters'] },
    limit: 'exempt',
  },
  {
    name: 'node-high',
    about: 'heartbeats of nodes: a limit would let nodes fail',
    rule: {
      verbs: ['*'],
      apiGroups: ['', 'coordination.k8s.io'],
      resources: ['nodes', 'nodes/status', 'leases'],
      userGroups: ['system:nodes'],
    },
    limit: 'exempt',
  },
  {
    name: 'leader-election',
    about: 'leases of the control plane: a limit would let leaders lose them',
    rule: {
      verbs: ['*'],
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      users: CONTROL_PLANE,
    },
    limit: 'exempt',
  },
  {
    name: 'system-leader-election',
    about: 'leases of controllers in kube-system',
    rule: { verbs: ['*'], apiGroups: ['coordination.k8s.io'], resources: ['leases'], userGroups: [KUBE_SYSTEM] },
    limit: 'exempt',
  },
  ...twofold('system', 'nodes', { userGroups: ['system:nodes'] }),
  ...twofold('control-plane', 'kube-controller-manager and kube-scheduler', { users: CONTROL_PLANE }),
  ...twofold('workload-high', 'service accounts of kube-system', { userGroups: [KUBE_SYSTEM] }),
  ...twofold('workload-low', 'all other service accounts', { userGroups: ['system:serviceaccounts'] }),
  ...twofold('global-default', 'everybody else', {}),
]

function twofold(name: string, who: string, subjects: Partial<DispatchRule>): PriorityClass[] {
  return [
    { name: `${name}-lists`, about: `lists of ${who}`, rule: { ...LISTS, ...subjects }, limit: 'lists' },
    { name, about: `all other requests of ${who}`, rule: { ...EVERYTHING, ...subjects }, limit: 'rate' },
  ]
}

const POLICIES: readonly CompiledPolicy[] = PRIORITY_CLASSES.map(({ rule }, index) => ({
  index,
  rules: [compileRule(rule)],
  strategy: 'RoundRobin',
  endpoints: [],
  schema: -1,
  logMode: '',
  deny: false,
  shadow: false,
}))

/** Index into PRIORITY_CLASSES. */
export function classOf(info: RequestInfo, user: UserInfo): number {
  return matchPolicy(POLICIES, info, user, '')?.policy ?? PRIORITY_CLASSES.length - 1
}
