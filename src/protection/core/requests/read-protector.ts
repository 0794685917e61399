// Parses a PodProtector from a store that may not have validated it: every valid part is used, with defaults for the rest that err on the
// side of protection. One bad field never affects the others.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, type Loose, looseView, recordOf } from '../../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type {
  AdmissionHistoryConfig,
  CellStatus,
  PodProtector,
  PodProtectorSpec,
  PodProtectorStatus,
  StatusSummary,
} from '../../api/pod-protector.ts'
import { POD_PROTECTOR_API_VERSION, POD_PROTECTOR_KIND, POD_PROTECTOR_SCHEMA } from '../../api/schema.ts'

interface ReadProtector {
  readonly protector: PodProtector
  /** Sentences: what can't be read, and what is used instead. */
  readonly faults: readonly string[]
}

/** As minAvailable: no pod can be deleted. */
const ALL = 2 ** 31 - 1
const SELECTS_NOTHING: LabelSelector = {
  matchExpressions: [
    { key: 'none', operator: 'Exists' },
    { key: 'none', operator: 'DoesNotExist' },
  ],
}

/**
 * @param object has a metadata.name and .namespace
 * @param before the previous object of the same name: its spec replaces what can't be read
 */
export function readProtector(object: JsonObject, before: PodProtector | undefined): ReadProtector {
  const { spec: given, status } = object
  const view = looseView(POD_PROTECTOR_SCHEMA, { spec: given }) as Loose<PodProtector>
  const { spec, faults } = readSpec(given, view.spec ?? {}, before?.spec)
  const protector: PodProtector = {
    apiVersion: POD_PROTECTOR_API_VERSION,
    kind: POD_PROTECTOR_KIND,
    // Only its identity is used here.
    metadata: object['metadata'] as PodProtector['metadata'],
    spec,
    ...(isRecord(status) && { status: readStatus(status) }),
  }
  return { protector, faults }
}

function readSpec(
  raw: unknown,
  view: Loose<PodProtectorSpec>,
  before: PodProtectorSpec | undefined,
): { readonly spec: PodProtectorSpec; readonly faults: readonly string[] } {
  const fields = recordOf(raw)
  const faults: string[] = []
  const fault = (path: keyof typeof INSTEAD, why: string): void => {
    faults.push(`spec.${path} ${why}: ${before === undefined ? INSTEAD[path] : 'the previous value stays in force'}`)
  }
  const count = (path: 'minAvailable' | 'minReadySeconds', instead: number): number => {
    const value = view[path]
    if (value !== undefined) return Math.max(0, value)
    fault(path, 'is not a whole number')
    return before?.[path] ?? instead
  }
  const selector = (path: 'selector' | 'aggregationSelector'): LabelSelector | undefined => {
    try {
      compileSelector(fields[path] as LabelSelector)
      return fields[path] as LabelSelector
    } catch (error) {
      fault(path, error instanceof Error ? `cannot be read: ${error.message}` : 'cannot be read')
      return before?.[path]
    }
  }
  const isCounted = fields['aggregationSelector'] !== undefined && fields['aggregationSelector'] !== null
  const minAvailable = count('minAvailable', ALL)
  const minReadySeconds = fields['minReadySeconds'] === undefined ? 0 : count('minReadySeconds', 0)
  const counted = isCounted ? selector('aggregationSelector') : undefined
  const config = view.admissionHistoryConfig
  const spec = {
    minAvailable,
    minReadySeconds,
    selector: selector('selector') ?? SELECTS_NOTHING,
    ...(counted !== undefined && { aggregationSelector: counted }),
    ...(config !== undefined && { admissionHistoryConfig: present(config) as AdmissionHistoryConfig }),
  }
  return { spec, faults }
}

/** Fallbacks for fields that were never readable. */
const INSTEAD = {
  minAvailable: 'no available pod can be deleted',
  minReadySeconds: '0 is used instead',
  selector: 'no pod is protected',
  aggregationSelector: 'spec.selector is used instead',
} as const

/** The histories are parsed leniently where they are used (cell-history.ts), which must see what it will write back. */
function readStatus(status: Readonly<Record<string, unknown>>): PodProtectorStatus {
  const { cells, summary } = status as { cells?: unknown; summary?: unknown }
  const known = Array.isArray(cells) ? (cells as unknown[]).filter(isCell) : []
  return { cells: known, summary: { ...NO_SUMMARY, ...recordOf(summary) } }
}

const NO_SUMMARY: StatusSummary = { totalReplicas: 0, aggregatedAvailableReplicas: 0, estimatedAvailableReplicas: 0 }

function isCell(cell: unknown): cell is CellStatus {
  return isRecord(cell) && typeof cell['cellID'] === 'string'
}

/** Drops fields that are undefined. */
function present<T extends object>(value: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(entries) as { [Key in keyof T]?: Exclude<T[Key], undefined> }
}
