// The object plane selected by the settings.

import type { ResourceSource } from '../../gateway/api/resource-source.ts'
import { createFilesSource } from '../../gateway/io/sources/files/source.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { FileLock } from '../../kit/io/locks/file-lock.ts'
import type { LineWriter } from '../../kit/io/logs/line-writer.ts'
import type { KubeCallEvents } from '../../kube/io/client-events.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import type { Config } from '../../process/config/config.ts'
import type { LastGoodStates } from '../last-good/states.ts'
import type { OverlaySource } from '../subjects/subject.ts'
import { EmbeddedPlane } from './embedded-plane.ts'
import { KubernetesPlane } from './kubernetes-plane.ts'
import type { ObjectPlane } from './object-plane.ts'
import { checksOf } from './plane-options.ts'

interface PlaneExtras {
  /** The lock of the embedded store, released by the plane; undefined = it acquires the lock itself. */
  readonly lock?: FileLock | undefined
  /** Goes over what an API server says. */
  readonly overlay?: OverlaySource | undefined
}

/**
 * @param lastGood storage of what is in force, for a start without the API server
 * @param audit receives lines of the embedded API server's audit log; undefined = none
 * @param calls notified of calls to the API server that holds the objects
 * @throws {UserError} for errors that the operator can fix
 */
export function createObjectPlane(
  config: Config,
  log: Logger,
  calls: KubeCallEvents,
  audit: LineWriter | undefined,
  lastGood: LastGoodStates,
  { lock, overlay }: PlaneExtras = {},
): ObjectPlane {
  switch (config.source) {
    case 'files':
      return filesPlane(config, log)
    case 'embedded':
      return new EmbeddedPlane(config, log, audit, lock)
    case 'kubernetes':
      return new KubernetesPlane(config, log, calls, audit, lastGood, overlay)
  }
}

function filesPlane(config: Config, log: Logger): ObjectPlane {
  return planeWithoutApi(
    createFilesSource({
      dir: config.configDir,
      pem: nodePemChecks,
      log,
      checks: { ...checksOf(config), recovery: false },
    }),
  )
}

/** For a source without an API server. */
export function planeWithoutApi(source: ResourceSource): ObjectPlane {
  return {
    name: 'objects',
    source,
    client: undefined,
    server: '',
    port: 0,
    adminKubeconfig: '',
    review: undefined,
    adminLogin: undefined,
    peerAccess: undefined,
    revoked: undefined,
    stop: () => Promise.resolve(),
  }
}
