// The balancing strategies: the one list of them. Type, schema, CRD and `kubectl explain` follow; how each picks is a row of PICKERS
// in src/gateway/core/endpoints/pick-endpoint.ts.

export const STRATEGIES = ['RoundRobin', 'Random', 'LeastRequest', 'Affinity'] as const

export type Strategy = (typeof STRATEGIES)[number]
