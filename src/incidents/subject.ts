// What incidents add to the program, which has no other import of them (program/subjects/subjects.ts).

import { addDegrade } from './cli/program.ts'

export const INCIDENTS = {
  kinds: [],
  fields: ['degrade.mode', 'degrade.recovery', 'degrade.auto'] as const,
  addCommands: addDegrade,
  filters: async () => (await import('./app/filters.ts')).incidentFilters,
  overlay: async () => (await import('./app/local-switches.ts')).overlayLocalSwitches,
  led: async () => (await import('./app/incidents.ts')).startIncidents,
}
