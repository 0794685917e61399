// `portcullis revoke` in several clusters, and taking it back: one plan, one confirmation, waves, and what is in force of it.

import type { JsonObject } from '../kit/api/json/json-object.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { parseDuration } from '../kit/core/text/duration.ts'
import { metaTime } from '../kit/core/text/meta-time.ts'
import { printable } from '../kit/core/text/printable.ts'
import { type ChangeManyOptions, changeMany } from './client/change-many.ts'
import type { LeftOut, PlannedChange } from './client/change-plan.ts'
import { type ClusterArguments, readArguments, readChosen } from './client/chosen-clusters.ts'
import { type ControlPlaneOptions, metadataOf, readPositiveDuration, withControlPlane } from './client/control-plane.ts'
import { membersNote } from './client/federated-members.ts'
import { patchAsPlanned } from './client/patch-as-planned.ts'
import { refusedPatches } from './client/patch-right.ts'
import {
  hasRevoked,
  type NamedSubjects,
  revokedText,
  takenBackFrom,
  withoutRevoked,
  withRevoked,
} from './client/revoked-list.ts'
import { REVOKE_MANAGER, type RevokeOptions, readSubjects } from './revoke.ts'

export interface RevokeManyOptions
  extends ControlPlaneOptions,
    ClusterArguments,
    Omit<ChangeManyOptions, 'out' | 'err'>,
    Pick<RevokeOptions, 'user' | 'certificateFile' | 'tokenFile' | 'reason' | 'undo' | 'timeout'> {
  /** `wide`: a line for each cluster, however many they are. */
  readonly output?: string
}

/** What the command does to each cluster. */
interface Change {
  readonly title: string
  /** The planned change; a text = why there is nothing to do. */
  plan(object: JsonObject): Pick<PlannedChange, 'from' | 'to'> | string
  /** The list of an object afterwards, for a merge patch; undefined = it stays. */
  list(object: JsonObject): readonly unknown[] | null | undefined
  verdict(object: JsonObject): { readonly state: string; readonly fault: string }
  readonly afterFailure: string
}

interface PlannedRevocation extends PlannedChange {
  readonly object: JsonObject
}

const AGAIN = 'repeat the command to continue with the rest (--except NAME leaves one out)'

/** Resolves with the exit code: 1 after an error, or if one of the clusters doesn't have it in force. */
export function revokeMany(options: RevokeManyOptions): Promise<number> {
  return withControlPlane(options, async (client) => {
    const { now, output, reason, undo = false } = options
    const { subjects, text } = readSubjects(options)
    if (output !== undefined && output !== 'wide') {
      throw new UserError(`--output ${JSON.stringify(output)} is not known`, 'write -o wide, or leave it out')
    }
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '30s', parseDuration)
    const named = { subjects, ...(reason !== undefined && { reason }) }
    const change = undo ? takingBack(named, text) : revoking(named, text, metaTime(now()))
    const { objects, ...listed } = await readChosen(client, readArguments(options), true)
    const changes: PlannedRevocation[] = []
    const unchanged: LeftOut[] = []
    const chosen = objects.map((object) => metadataOf(object).name)
    for (const object of objects) {
      const { name } = metadataOf(object)
      const planned = change.plan(object)
      if (typeof planned === 'string') unchanged.push({ name, why: planned })
      else changes.push({ name, ...planned, note: membersNote(object, chosen), object })
    }
    const names = changes.map(({ name }) => name)
    const refused = await refusedPatches(client, names)
    return await changeMany(
      {
        ...listed,
        client,
        timeoutMs,
        plan: {
          title: change.title,
          changes: changes.filter(({ name }) => !refused.has(name)),
          unchanged,
          stopped: [...refused].map(([name, why]) => ({ name, why })),
        },
        change: async ({ object }) => {
          const specOf = (one: JsonObject): JsonObject => {
            const revoked = change.list(one)
            return revoked === undefined ? {} : { authentication: { revoked } }
          }
          return await patchAsPlanned(client, object, specOf, REVOKE_MANAGER, ANY)
        },
        verdict: change.verdict,
        afterFailure: change.afterFailure,
      },
      options,
    )
  })
}

/** Entries of others come and go, and one that is there already, or gone already, is what is wanted. */
const ANY = { part: () => undefined, describe: () => '' }

function revoking(named: NamedSubjects, text: string, revokedAt: string): Change {
  return {
    title: `revoke ${text}`,
    plan: (object) => (hasRevoked(object, named) ? 'revoked already' : { from: 'accepted', to: 'revoked' }),
    list: (object) => withRevoked(object, named, revokedAt),
    verdict: (object) => ({
      state: 'revoked',
      fault: hasRevoked(object, named) ? '' : 'another client has removed the entry since',
    }),
    afterFailure: `${AGAIN}; --undo for the same clusters reverts the changes`,
  }
}

function takingBack(named: NamedSubjects, text: string): Change {
  const { subjects, reason = '' } = named
  const others = (object: JsonObject): string => {
    const left = takenBackFrom(object, { subjects })
    return left.length === 0 ? '' : revokedText(left)
  }
  return {
    title: `lift the revocation of ${text}${reason === '' ? '' : ` for ${printable(reason)}`}`,
    plan: (object) => {
      const taken = takenBackFrom(object, named)
      if (taken.length > 0) return { from: revokedText(taken), to: 'accepted' }
      return others(object) === '' ? 'not revoked' : `${others(object)}, which is another reason`
    },
    list: (object) => withoutRevoked(object, named),
    verdict: (object) => {
      const fault = takenBackFrom(object, named).length === 0 ? '' : 'another client has added an entry since'
      return { state: others(object) || 'accepted', fault }
    },
    afterFailure: AGAIN,
  }
}
