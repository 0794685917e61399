// Puts the degrade switches of this machine over what the API server of the objects says, and tells the audit log.

import type { ResourceSource } from '../../gateway/api/resource-source.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { SwitchedSource } from '../controllers/local-switches/switched-source.ts'
import { localSwitchLine } from '../io/local-switches/audit-line.ts'

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
