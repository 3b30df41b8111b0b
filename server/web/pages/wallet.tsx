import { Empty } from "../ui/parts.tsx";

export default function Page() {
  return <Empty>wallet</Empty>;
}
