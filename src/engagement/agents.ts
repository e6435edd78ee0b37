import type { Clock } from "../token/clock.js";
import { collection, type Documents } from "../token/documents.js";
import { invalidRequest, OAuthError } from "../token/errors.js";
import { checkHours, type Hours, isOpen } from "./hours.js";

/** The states an agent can be in. */
export const AGENT_STATES = ["online", "busy", "offline"] as const;
/** One of `AGENT_STATES`. */
export type AgentState = (typeof AGENT_STATES)[number];

/** An agent of a business unit. */
export interface ServiceAgent {
  readonly id: string;
  readonly groups: readonly string[];
  readonly state: AgentState;
}

/** The agents of one business unit of a site, and its opening hours. */
export interface BusinessUnit {
  readonly siteId: string;
  readonly businessUnitId: number;
  readonly agents: readonly ServiceAgent[];
  readonly hours: Hours | null;
}

/** The answer of agentAvailability. */
export interface Availability {
  readonly availability: boolean;
  /** Within the hours of operation. */
  readonly inHOP: boolean;
  readonly status: AgentState;
}

/** Who can be reached, by site and business unit. */
export interface Agents {
  put(
    siteId: string,
    businessUnitId: number,
    agent: { id: string; groups?: readonly string[]; state?: AgentState },
  ): Promise<BusinessUnit>;
  remove(siteId: string, businessUnitId: number, agentId: string): Promise<BusinessUnit>;
  setHours(siteId: string, businessUnitId: number, hours: Hours | null): Promise<BusinessUnit>;
  list(): Promise<BusinessUnit[]>;
  /** An unknown agent group or business unit is reported as not available. */
  availability(siteId: string, businessUnitId: number, group?: string): Promise<Availability>;
}

/** From an address: `Number` would read an empty text as 0, and `1e3` and `0x10` as numbers. */
export function businessUnitOf(text: string): number {
  if (!/^\d{1,15}$/.test(text))
    throw invalidRequest(`businessUnitID must be a number of at most 15 digits, got "${text.slice(0, 64)}"`);
  return Number(text);
}

const ID = /^[A-Za-z0-9._@-]{1,64}$/;

export function createAgents({ documents, clock }: { documents: Documents; clock: Clock }): Agents {
  const units = collection<BusinessUnit>(documents, "engagement.business-units");

  function key(siteId: string, businessUnitId: number): string {
    if (!ID.test(siteId))
      throw invalidRequest(`siteId must have 1 to 64 characters of A-Z a-z 0-9 . _ @ -, got "${siteId}"`);
    if (!Number.isSafeInteger(businessUnitId) || businessUnitId < 0)
      throw invalidRequest(`businessUnitId must be a whole number of at least 0, got ${businessUnitId}`);
    return `${siteId}/${businessUnitId}`;
  }

  const modify = async (
    siteId: string,
    businessUnitId: number,
    change: (unit: BusinessUnit) => BusinessUnit,
  ): Promise<BusinessUnit> =>
    units.update(key(siteId, businessUnitId), (unit) =>
      change(unit ?? { siteId, businessUnitId, agents: [], hours: null }),
    );

  return {
    async put(siteId, businessUnitId, { id, groups, state }) {
      if (!ID.test(id))
        throw invalidRequest(`the agent id must have 1 to 64 characters of A-Z a-z 0-9 . _ @ -, got "${id}"`);
      if (state !== undefined && !AGENT_STATES.includes(state))
        throw invalidRequest(`state must be one of ${AGENT_STATES.join(", ")}, got "${state}"`);
      const wrong = groups?.find((group) => !ID.test(group));
      if (wrong !== undefined)
        throw invalidRequest(`each group id must have 1 to 64 characters of A-Z a-z 0-9 . _ @ -, got "${wrong}"`);
      return modify(siteId, businessUnitId, (unit) => {
        const before = unit.agents.find((agent) => agent.id === id);
        const agent: ServiceAgent = {
          id,
          groups: groups ?? before?.groups ?? [],
          state: state ?? before?.state ?? "offline",
        };
        return { ...unit, agents: [...unit.agents.filter((other) => other.id !== id), agent] };
      });
    },

    async remove(siteId, businessUnitId, agentId) {
      return units.update(key(siteId, businessUnitId), (unit) => {
        if (!unit?.agents.some((agent) => agent.id === agentId))
          throw new OAuthError("not_found", `agent ${agentId} does not exist in this business unit`);
        return { ...unit, agents: unit.agents.filter((agent) => agent.id !== agentId) };
      });
    },

    async setHours(siteId, businessUnitId, hours) {
      const checked = hours === null ? null : checkHours(hours);
      return modify(siteId, businessUnitId, (unit) => ({ ...unit, hours: checked }));
    },

    list: () => units.list(),

    async availability(siteId, businessUnitId, group) {
      const unit = await units.get(`${siteId}/${businessUnitId}`);
      const agents = (unit?.agents ?? []).filter((agent) => group === undefined || agent.groups.includes(group));
      const status = AGENT_STATES.find((state) => agents.some((agent) => agent.state === state)) ?? "offline";
      const inHOP = unit !== null && isOpen(unit.hours, clock.now());
      return { availability: inHOP && status === "online", inHOP, status };
    },
  };
}
