import { Empty } from "../ui/parts.tsx";

export default function Page() {
  return <Empty>verify-email</Empty>;
}
