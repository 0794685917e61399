import { checkCosts } from './check-costs.ts'
import { OBJECTS } from './table.ts'

checkCosts(OBJECTS)
