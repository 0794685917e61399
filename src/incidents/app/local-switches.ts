// Puts the degrade switches of this machine over what the API server of the objects says, and tells the audit log.

import { randomUUID } from 'node:crypto'
import type { ResourceSource } from '../../gateway/api/resource-source.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { auditLine } from '../../kube/io/audit/audit-event.ts'
import { SwitchedSource } from '../controllers/local-switches/switched-source.ts'
import type { LocalSwitch } from '../io/local-switches/switch-file.ts'

interface LocalSwitchesDeps {
  /** Delivers the objects as they are. */
  readonly source: ResourceSource
  readonly client: Pick<ObjectClient, 'get' | 'patch'>
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Logger
  /** Takes a line of the audit log. */
  audit(line: string): void
}

export function overlayLocalSwitches({ audit, ...deps }: LocalSwitchesDeps): SwitchedSource {
  const { clock } = deps
  return new SwitchedSource({
    ...deps,
    onThrown: (local, lifted) => audit(localSwitchLine(local, lifted, clock.now())),
  })
}

/** An audit event, like a patch of the object by an OS user of the machine. Without the line end. */
function localSwitchLine({ cluster, mode, reason, by, at }: LocalSwitch, lifted: boolean, nowMs: number): string {
  const { group, version, plural } = UPSTREAM_CLUSTERS
  return auditLine({
    auditId: randomUUID(),
    stage: 'ResponseComplete',
    requestURI: `/apis/${group}/${version}/${plural}/${cluster}`,
    verb: 'patch',
    user: { name: `local:${by}`, uid: '', groups: ['portcullis:local'] },
    impersonatedUser: undefined,
    sourceIP: '',
    userAgent: 'portcullis degrade --local',
    object: { resource: plural, namespace: '', name: cluster, apiGroup: group, apiVersion: version, subresource: '' },
    response: { code: 200 },
    receivedMs: nowMs,
    stageMs: nowMs,
    annotations: {
      'portcullis.io/local-degrade': lifted ? `${mode} lifted` : mode,
      'portcullis.io/local-degrade-at': at,
      ...(reason !== '' && { 'portcullis.io/reason': reason }),
    },
  })
}
