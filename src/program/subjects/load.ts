// The modules of the subjects that this thread needs.

import type {
  CheckSettings,
  CreateComponent,
  CreateFilters,
  CreateObservers,
  OverlaySource,
  StartLed,
} from './subject.ts'
import { SUBJECTS } from './subjects.ts'

/** What the main thread loads of the subjects. */
export interface LoadedSubjects {
  readonly components: readonly CreateComponent[]
  readonly led: readonly StartLed[]
  /** undefined = no subject has one. */
  readonly overlay: OverlaySource | undefined
}

/** Checks of all settings, before anything is written. */
export async function loadChecks(): Promise<readonly CheckSettings[]> {
  return await Promise.all(SUBJECTS.flatMap(({ check }) => check?.() ?? []))
}

export async function loadSubjects(): Promise<LoadedSubjects> {
  return {
    components: await Promise.all(SUBJECTS.flatMap(({ component }) => component?.() ?? [])),
    led: await Promise.all(SUBJECTS.flatMap(({ led }) => led?.() ?? [])),
    overlay: await SUBJECTS.find(({ overlay }) => overlay !== undefined)?.overlay?.(),
  }
}

/** What a gateway thread loads of the subjects. */
export interface ThreadSubjects {
  readonly filters: readonly CreateFilters[]
  readonly observers: readonly CreateObservers[]
}

export async function loadThreadSubjects(): Promise<ThreadSubjects> {
  return {
    filters: await Promise.all(SUBJECTS.flatMap(({ filters }) => filters?.() ?? [])),
    observers: await Promise.all(SUBJECTS.flatMap(({ observers }) => observers?.() ?? [])),
  }
}
