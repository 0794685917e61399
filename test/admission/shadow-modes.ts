// For each reason of a refusal: the field that makes the rule behind it count, warn and log instead of refusing, or why there is none. Rules
// that an operator writes have one; what no rule decides has nothing to try out.

import type { RefusalReason } from '../../src/kit/core/refusal/refusal.ts'

export interface ShadowField {
  readonly kind: 'UpstreamCluster' | 'ScaleUpGuard' | 'ScaleDownPolicy'
  /** From `spec`, without indexes. */
  readonly path: string
}

export type ShadowMode = { readonly fields: readonly ShadowField[] } | { readonly whyNot: string }

const NOTHING_ELSE = { whyNot: 'a cluster with members has no servers that it could be forwarded to' } as const

export const SHADOW_MODES: Readonly<Record<RefusalReason, ShadowMode>> = {
  'bad-request': { whyNot: 'the request cannot be read, or not in one way only' },
  'headers-too-large': { whyNot: 'upstream would not take it either, and end the connection of others' },
  'target-too-long': { whyNot: 'a limit of the program: reading it would cost others' },
  'request-info': { whyNot: 'no rule can match what cannot be read' },
  'unknown-cluster': { whyNot: 'there is nowhere to send it' },
  misdirected: { whyNot: 'the certificate was verified for another cluster' },
  unauthorized: { whyNot: 'the user is unknown: without an identity nothing is forwarded' },
  revoked: { whyNot: 'a credential that was stolen is not let in to see what would happen' },
  'authentication-unavailable': { whyNot: 'the user is unknown' },
  'too-many-reviews': { whyNot: 'without the review the user, or what is deleted, is unknown' },
  'impersonation-invalid': { whyNot: 'the user that it is to run as is unknown' },
  'impersonation-forbidden': { whyNot: "the cluster's RBAC decides: it would be an escalation" },
  'grant-ended': { whyNot: 'without the grant it is another user, whom the cluster may know nothing of' },
  'no-policy': { whyNot: 'no rule refuses it; a last policy with action Deny and shadow shows what would be' },
  'policy-denied': upstreamCluster('dispatchPolicies.shadow'),
  'access-denied': upstreamCluster('accessControl.shadow'),
  degraded: upstreamCluster('degrade.shadow'),
  'disruption-refused': upstreamCluster('degrade.shadow'),
  'eviction-refused': upstreamCluster('degrade.shadow'),
  'disruption-limited': upstreamCluster('degrade.shadow'),
  'list-too-large': upstreamCluster('listGuard.shadow'),
  'rate-limited': upstreamCluster('flowControl.flowControlSchemas.shadow'),
  'too-many-in-flight': upstreamCluster('flowControl.flowControlSchemas.shadow'),
  'too-many-watches': upstreamCluster('flowControl.flowControlSchemas.shadow'),
  'too-many-cancelled': { whyNot: 'a limit of the program: cancelled requests break those of others upstream' },
  'too-many-failures': { whyNot: 'a limit of the program: who guesses would go on' },
  'share-exceeded': { whyNot: 'a limit of the program: others would have less than their share' },
  'no-endpoint': { whyNot: 'there is nowhere to send it' },
  'upstream-failed': { whyNot: 'upstream has not answered' },
  'session-not-recorded': {
    whyNot: 'whenFull: Drop lets sessions go on without a recording, and the audit log says which',
  },
  'upgrade-unsupported': { whyNot: 'the request is nothing without an upgrade' },
  'upgrade-failed': { whyNot: 'upstream has not answered' },
  'body-too-large': { whyNot: 'a limit of the program: what was read of it is gone' },
  'body-timeout': { whyNot: 'what was read of it is gone' },
  'unsupported-media-type': { whyNot: 'what it does cannot be read' },
  'not-federated': NOTHING_ELSE,
  'federated-object-missing': NOTHING_ELSE,
  'federated-name-twice': NOTHING_ELSE,
  'federated-watch-merged': NOTHING_ELSE,
  'federated-write': NOTHING_ELSE,
  'federated-encoding': NOTHING_ELSE,
  'federated-version-gone': NOTHING_ELSE,
  'federated-write-stale': { whyNot: 'the object has changed' },
  'federated-version-ahead': NOTHING_ELSE,
  'federated-memory': NOTHING_ELSE,
  'member-forbidden': { whyNot: 'the members decide who may read them' },
  'member-answer': { whyNot: 'names of the member would be taken for those of this cluster' },
  'member-unavailable': NOTHING_ELSE,
  'websocket-origin': { whyNot: 'kube-apiserver refuses it too' },
  'scale-up-backed-off': { fields: [{ kind: 'ScaleUpGuard', path: 'shadow' }] },
  'protection-forbidden': { whyNot: "the cluster's RBAC decides" },
  protected: upstreamCluster('podProtection.shadow'),
  'protection-unavailable': upstreamCluster('podProtection.shadow'),
  'eviction-unavailable': upstreamCluster('podProtection.shadow'),
  'scale-protected': upstreamCluster('scaleProtection.shadow'),
  'scale-unavailable': {
    fields: [
      { kind: 'UpstreamCluster', path: 'scaleProtection.shadow' },
      { kind: 'ScaleDownPolicy', path: 'shadow' },
    ],
  },
  internal: { whyNot: 'a bug' },
}

function upstreamCluster(path: string): ShadowMode {
  return { fields: [{ kind: 'UpstreamCluster', path }] }
}
