// The modules of the subjects that this thread needs.

import type {
  CheckSettings,
  CreateFilters,
  OverlaySource,
  StartLed,
  StartSubject,
  SubjectComponent,
} from './subject.ts'
import { SUBJECTS } from './subjects.ts'

interface LoadedComponent extends Pick<SubjectComponent, 'name' | 'state'> {
  readonly start: StartSubject
}

/** What the main thread loads of the subjects. */
export interface LoadedSubjects {
  readonly components: readonly LoadedComponent[]
  readonly led: readonly StartLed[]
}

/** Checks of all settings, before anything is written. */
export async function loadChecks(): Promise<readonly CheckSettings[]> {
  return await Promise.all(SUBJECTS.flatMap(({ check }) => check?.() ?? []))
}

/** For an object plane; undefined = no subject has one. */
export async function loadOverlay(): Promise<OverlaySource | undefined> {
  return await SUBJECTS.find(({ overlay }) => overlay !== undefined)?.overlay?.()
}

export async function loadSubjects(): Promise<LoadedSubjects> {
  const components = SUBJECTS.flatMap(({ component }) => component ?? [])
  return {
    components: await Promise.all(
      components.map(async ({ name, state, load }) => ({ name, state, start: await load() })),
    ),
    led: await Promise.all(SUBJECTS.flatMap(({ led }) => led?.() ?? [])),
  }
}

/** What a gateway thread loads of the subjects. */
export async function loadFilters(): Promise<readonly CreateFilters[]> {
  return await Promise.all(SUBJECTS.flatMap(({ filters }) => filters?.() ?? []))
}
