// Pod protection in the output of `portcullis demo`: one service over both clusters, and which of its pods may be deleted.

import { COMMAND } from '../kit/io/program/build.ts'
import type { DemoBackend } from './clusters.ts'

/** State of the demo's PodProtector when the guide is printed. */
export interface ProtectedService {
  readonly minAvailable: number
  readonly minReadySeconds: number
  /** Pods in all clusters. */
  readonly available: number
}

export function protectionGuide(service: ProtectedService, backends: readonly DemoBackend[], admin: string): string {
  const { minAvailable, minReadySeconds, available } = service
  const spareNode = backends.find(({ name }) => name === 'prod')?.spareNode ?? ''
  return `Pod protection: the service web runs in both clusters, and ${minAvailable} of its ${available} pods must stay available, wherever they run. PodProtector
shop/web, in the gateway's own API server, says so; a new pod counts when it has been ready for ${minReadySeconds} seconds:
  kubectl --context portcullis get ppr -A
  ${COMMAND} protect status -n shop --context portcullis
A deletion that is allowed:
  oldest() { kubectl --context $1-alice get pods -l app=web -o name --sort-by=.metadata.creationTimestamp | head -n 1 | cut -d/ -f2; }
  kubectl delete pod $(oldest prod)
Delete all of them in staging by accident: a few deletions are allowed, the others are refused, with the numbers, and now also in prod:
  kubectl --context staging-alice delete pods -l app=web
  kubectl delete pod $(oldest prod)
  ${COMMAND} protect why $(oldest prod) -n shop --cluster prod --context portcullis --pod-context prod-alice
As soon as the new pods count, some deletions are allowed again. A drain keeps trying until then:
  kubectl --context prod-admin drain ${spareNode}
  kubectl --context prod-admin uncordon ${spareNode}
The emergency switch: deletions are evaluated and counted, but none is refused; kubectl shows a warning. Then switch it back:
  ${COMMAND} protect dry-run on --context portcullis
  kubectl --context staging-alice delete pods -l app=web
  ${COMMAND} protect dry-run off --context portcullis
  curl -s ${admin}/metrics | grep webhook_request_count
`
}
