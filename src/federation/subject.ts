// What federated reads add to the program, which has no other import of them (program/subjects/subjects.ts).

export const FEDERATION = {
  kinds: [],
  fields: ['members'] as const,
  filters: async () => (await import('./app/filters.ts')).federationFilters,
  component: async () => (await import('./app/federations.ts')).createFederations,
}
