// The clients that decide whether pods are lost in an incident: those that keep nodes Ready, and those that evict pods from nodes that are
// not.

import type { UserInfo } from '../../../kube/api/user.ts'

/** In the order of their slots in memory (state/incident.ts). */
export const CLIENT_CLASSES = ['controllerManager', 'kubelets'] as const

export type ClientClass = (typeof CLIENT_CLASSES)[number]

const CONTROLLER_MANAGER = 'system:kube-controller-manager'
const CONTROLLERS = 'system:serviceaccount:kube-system:'
const CONTROLLERS_AGENT = 'kube-controller-manager/'
const NODE = 'system:node:'
const GROUP_NODES = 'system:nodes'

/**
 * Classifies by verified names, since a false match would make the switch seem safe. With --use-service-account-credentials each controller
 * has its own service account, and the User-Agent tells it from others in kube-system. Cheap: runs for every request.
 */
export function clientClassOf({ name, groups }: UserInfo, userAgent: string): ClientClass | undefined {
  // `system:n`, `system:k` or `system:s`.
  const first = name.length > 8 && name.startsWith('system:') ? name.charCodeAt(7) : 0
  if (first === 0x6e) return name.startsWith(NODE) && groups.includes(GROUP_NODES) ? 'kubelets' : undefined
  if (first === 0x6b) return name === CONTROLLER_MANAGER ? 'controllerManager' : undefined
  if (first !== 0x73 || !userAgent.startsWith(CONTROLLERS_AGENT)) return undefined
  return name.startsWith(CONTROLLERS) ? 'controllerManager' : undefined
}
