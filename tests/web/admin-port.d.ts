// What the admin port answers, for the page's scripts: `import("admin-port")` in their JSDoc. Everything follows from the
// OpenAPI description of the port, by path, so a name that changes in Python changes nothing here.

import type { paths } from "./generated/paths";

type WithoutQuery<Path extends string> = Path extends `${infer Bare}?${string}` ? Bare : Path;

/** The paths that take a method, as the page writes them: relative, with or without a query. */
type Paths<Method extends "get" | "post"> = {
  [Path in keyof paths]: paths[Path] extends Record<Method, { responses: unknown }> ? Path : never;
}[keyof paths];

type Relative<Path extends string> = Path extends `/${infer Rest}` ? Rest | `${Rest}?${string}` : never;

export type GetPath = Relative<Paths<"get">>;
export type PostPath = Relative<Paths<"post">>;

/** The JSON that a path answers with the status 200. */
export type Answer<Method extends "get" | "post", Path extends string> = `/${WithoutQuery<Path>}` extends infer Full
  ? Full extends keyof paths
    ? paths[Full] extends Record<Method, { responses: { 200: { content: { "application/json": infer Body } } } }>
      ? Body
      : never
    : never
  : never;

export type NodeMap = Answer<"post", "explain/nodes">;
export type Reason = NodeMap["reasons"][number];

export type Explanation = Answer<"post", "explain">;
export type ExplainedNode = Explanation["nodes"][number];
export type NodeDecision = ExplainedNode["decision"];
export type Term = NodeDecision["terms"][number];
export type Supposed = Explanation["supposed"];
export type MirrorState = Explanation["mirror"];
/** An event of the port, whose description has no streams. */
export type FollowedState = MirrorState & { pending_changes: number };

export type MirrorNode = Answer<"get", "debug/mirror">["nodes"][number];
export type MirrorPod = MirrorNode["pods"][number];

export type ClusterView = Answer<"get", "cluster">;
export type ResourceUse = ClusterView["resources"][number];
export type Pending = Answer<"get", "pending">;
export type AwaitedVictim = NonNullable<Explanation["waits_for"]>[number];
export type UnitStatus = Answer<"get", "units">["units"][number];
export type PackingStatus = NonNullable<UnitStatus["packing"]>;

export type Capacity = Answer<"post", "what-if/capacity">;
export type Drain = Answer<"post", "what-if/drain">;
export type Loss = Answer<"post", "what-if/loss">;
export type Removal = Answer<"post", "what-if/removal">;
export type Assumptions = Drain["assumed"];
export type DrainedPod = Drain["pods"][number];
export type Rejected = NonNullable<DrainedPod["move"]["rejected"]>;
export type Workload = Drain["workloads"][number];
